/* The page of `tandem explain blocks`. */
#include "config/blocks/blocks.h"

static const char example[] =
    "  blocks:\n"
    "    basic:\n"
    "      params: {out, stride: 1, downsample: false}\n"
    "      layers:\n"
    "        - conv2d: {name: conv1, out: $out, kernel: 3, stride: $stride, padding: 1}\n"
    "        - relu: {id: main}\n"
    "        - conv2d: {name: downsample, input: input, out: $out, kernel: 1, stride: $stride, id: shortcut,\n"
    "                   when: $downsample}\n"
    "        - add: {input: [main, shortcut]}\n"
    "  layers:\n"
    "    - block: {use: basic, name: layer1, out: 64, repeat: 2, first: {stride: 2, downsample: true}}\n";

void tdm__explain_blocks(bool chinese, tdm_text *out) {
    static const char *const item[][3] = {
        {"params", "names and defaults; one without a value must be given by each use; $name or ${name} is its value",
         "参数名与默认值；没有值的参数必须在使用时给出；$name 或 ${name} 代表其值"},
        {"layers", "as model.layers; `input` is the input of the block; ids are seen inside the block only",
         "写法同 model.layers；input 表示该块的输入；id 仅在块内可见"},
        {"when", "of a layer: false leaves it out, and its id stands for its input, as nn.Identity",
         "用于层：false 表示去掉该层，其 id 代表它的输入，同 nn.Identity"},
        {"block.use", "which block; inside a block, one that stands above it",
         "使用哪个块；块内只能使用写在其上面的块"},
        {"block.name", "prefix of the layers' names: layer1 gives layer1.conv1, with repeat layer1.0.conv1",
         "层名的前缀：layer1 得到 layer1.conv1，带 repeat 时为 layer1.0.conv1"},
        {"block.repeat", "how many times, in sequence", "连续使用的次数"},
        {"block.first", "parameters that the first of them has instead", "第一次使用时取代的参数"},
        {"block.id, block.input, block.when", "as of a layer", "同层的相应键"},
    };
    tdm__text_printf(out, "model.blocks\n  %s\n\n%s\n",
                     chinese ? "带参数、可重复使用的层列表；`tandem show` 打印展开后的层"
                             : "lists of layers with parameters, to use by name; `tandem show` prints what they become",
                     example);
    for (size_t i = 0; i < sizeof(item) / sizeof(item[0]); i++)
        tdm__text_printf(out, "  %s\n      %s\n", item[i][0], item[i][chinese ? 2 : 1]);
}
