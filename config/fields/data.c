/* Keys of the data: where samples come from, and what is done to them. */
#include "config/fields/fields.h"

static const char *const resident_names[] = {"auto", "always", "never", NULL};
const tdm_field tdm__data_rows[] = {
    {FIELD(BOOL, tdm_data_section, shuffle, "true"), FLAGS(KEPT),
     HELP("a new order of samples in every epoch, the same as DistributedSampler's",
          "每轮重新打乱样本顺序（与 DistributedSampler 相同）")},
    {FIELD(BOOL, tdm_data_section, drop_last, "false"),
     HELP("skip the last, shorter batch of an epoch", "丢弃每轮最后不足一批的样本")},
    {FIELD(INT, tdm_data_section, workers, "2"), RANGE(0, 256), .unit = "threads", FLAGS(LOCAL),
     HELP("loader threads per process; 0: load in the training thread; never changes the numbers",
          "每个进程的加载线程数；0 表示在训练线程中加载；不影响数值结果")},
    {FIELD(ENUM, tdm_data_section, resident, "auto"), .names = resident_names, FLAGS(LOCAL),
     HELP("GPU: keep the training samples in its memory, so that only the sample numbers of a batch are sent; auto: if "
          "they need at most a quarter of the free memory; no effect on the CPU; never changes the numbers",
          "GPU：把训练样本保存在显存中，一个批次只需传送样本编号；auto 表示样本不超过空闲显存的四分之一时这样做；"
          "对 CPU 无意义；不影响数值结果")},
    {0},
};

static const char *const format_names[] = {"none",
#define TDM_FORMAT(key, name) #name,
#include <tandem/sys/formats.def>
#undef TDM_FORMAT
                                           NULL};
static const char *const bad_names[] = {"error", "skip", NULL};
static const char *const header_names[] = {"auto", "yes", "no", NULL};
static const char *const missing_names[] = {"error", "mean", "zero", NULL};
static const char *const unseen_names[] = {"error", "unknown", NULL};
static const char *const split_names[] = {"auto", "train", "test", NULL};
const tdm_field tdm__spec_rows[] = {
    {FIELD(ENUM, tdm_data_spec, format, NULL), .names = format_names, FLAGS(REQUIRED | MAIN | KEPT),
     HELP("where samples come from; none: the program that embeds tandem provides them",
          "样本来源；none 表示由嵌入 tandem 的程序提供")},
    {FIELD(PATH, tdm_data_spec, images, "null"), .types = BIT(TDM_DATA_IDX), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("idx: file of the images; may be .gz", "idx：图像文件，可为 .gz")},
    {FIELD(PATH, tdm_data_spec, labels, "null"), .types = BIT(TDM_DATA_IDX), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("idx: file of the labels; may be .gz", "idx：标签文件，可为 .gz")},
    {FIELD(PATH, tdm_data_spec, x, "null"), .types = BIT(TDM_DATA_NPY), FLAGS(NULLABLE | LOCAL),
     HELP(
         "npy: file of the inputs; the first dimension is the sample; above 256 MiB it stays on the disk, and rows are read when they are needed",
         "npy：输入文件，第一维为样本；大于 256 MiB 时留在磁盘上，用到时才读取相应的行")},
    {FIELD(MAP, tdm_data_spec, inputs, "null"), .types = BIT(TDM_DATA_NPY), ITEMS(0, TDM_LIST_MAX),
     FLAGS(NULLABLE | LOCAL | OF_PATHS),
     HELP("npy: instead of x, a file for each of model.inputs, by its name: {image: image.npy, facts: facts.npy}",
          "npy：代替 x，为 model.inputs 的每个输入按名字给出文件：{image: image.npy, facts: facts.npy}")},
    {FIELD(PATH, tdm_data_spec, y, "null"), .types = BIT(TDM_DATA_NPY), FLAGS(NEEDED | NULLABLE | LOCAL),
     HELP("npy: file of the labels or targets", "npy：标签或目标文件")},
    {FIELD(PATHS, tdm_data_spec, files, "null"), .types = BIT(TDM_DATA_CIFAR10), ITEMS(0, TDM_LIST_MAX),
     FLAGS(NULLABLE | LOCAL),
     HELP("cifar10: the binary batch files, in order; instead of `path`",
          "cifar10：按顺序列出的二进制批次文件；可代替 path")},
    {FIELD(PATH, tdm_data_spec, path, "null"),
     .types = BIT(TDM_DATA_CIFAR10) | BIT(TDM_DATA_IMAGE_FOLDER) | BIT(TDM_DATA_CSV), FLAGS(NULLABLE | LOCAL),
     HELP(
         "image_folder: the folder, whose sub-folders are the classes; csv: the file, may be .gz; cifar10: the folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, instead of `files`",
         "csv：文件，可为 .gz；其余为目录；cifar10：含 data_batch_1.bin 至 5 与 test_batch.bin，可代替 files")},
    {FIELD(TEXT, tdm_data_spec, label, "null"), .types = BIT(TDM_DATA_CSV), FLAGS(NULLABLE | KEPT),
     HELP(
         "csv: column of the label or target, by its name or its number from 0, or from -1, the last, backwards; null: the "
         "last",
         "csv：标签或目标所在的列，可写列名、从 0 起的列号或从 -1（最后一列）起的倒数列号；null 表示最后一列")},
    {FIELD(ENUM, tdm_data_spec, header, "auto"), .types = BIT(TDM_DATA_CSV), .names = header_names, FLAGS(KEPT),
     HELP("csv: whether the first row names the columns; auto: if none of its cells is a number",
          "csv：首行是否为列名；auto 表示首行没有数字时是")},
    {FIELD(TEXTS, tdm_data_spec, categories, "null"), .types = BIT(TDM_DATA_CSV), ITEMS(0, TDM_LIST_MAX),
     FLAGS(NULLABLE | KEPT),
     HELP(
         "csv: columns of words, by name or number from 0; they stand behind the numbers of a sample, as whole numbers "
         "for a layer that looks them up",
         "csv：类别列，写列名或从 0 起的列号；在样本中排在数值之后，以整数编号表示")},
    {FIELD(TEXTS, tdm_data_spec, ignore, "null"), .types = BIT(TDM_DATA_CSV), ITEMS(0, TDM_LIST_MAX),
     FLAGS(NULLABLE | KEPT), HELP("csv: columns that are left out, by name or number from 0", "csv：不使用的列")},
    {FIELD(ENUM, tdm_data_spec, missing, "error"), .types = BIT(TDM_DATA_CSV), .names = missing_names, FLAGS(KEPT),
     HELP("csv: a missing number (nothing, NA, NaN, null) is an error, or counts as the mean of its column in "
          "data.train, or as 0",
          "csv：缺失的数值（空、NA、NaN、null）报错，或以 data.train 中该列的均值代替，或记为 0")},
    {FIELD(ENUM, tdm_data_spec, unseen, "error"), .types = BIT(TDM_DATA_CSV), .names = unseen_names, FLAGS(KEPT),
     HELP("csv: a category that data.train does not have, or a missing one, is an error, or becomes number 0, which no "
          "other category has then",
          "csv：data.train 中没有的类别或空类别报错，或记为专门留出的 0")},
    {FIELD(BOOL, tdm_data_spec, standardize, "false"), .types = BIT(TDM_DATA_CSV), FLAGS(KEPT),
     HELP("csv: numbers become (number - mean) / standard deviation, those of their column in data.train",
          "csv：数值减去 data.train 中该列的均值，再除以标准差")},
    {FIELD(BOOL, tdm_data_spec, standardize_target, "false"), .types = BIT(TDM_DATA_CSV), FLAGS(KEPT),
     HELP("csv: the same for a target that is a number; predictions are given in its own unit",
          "csv：对数值目标同样处理；预测结果以原单位给出")},
    {FIELD(PATH, tdm_data_spec, file, "null"), .types = BIT(TDM_DATA_IMAGE_FOLDER), FLAGS(NULLABLE | LOCAL),
     HELP(
         "image_folder: a CSV table of path and label, instead of a folder for each class; paths are relative to `path`, "
         "or to the table's folder",
         "image_folder：列出路径与标签的 CSV 表，代替每类一个目录；路径相对于 path 或该表所在目录")},
    {FIELD(ENUM, tdm_data_spec, on_bad_sample, "error"), .types = BIT(TDM_DATA_IMAGE_FOLDER), .names = bad_names,
     HELP("image_folder: a picture that cannot be read ends the run, or is named and does not count",
          "image_folder：遇到无法读取的图片时结束，或指出文件名并跳过")},
    {FIELD(ENUM, tdm_data_spec, split, "auto"), .types = ~BIT(TDM_DATA_NONE), .names = split_names, FLAGS(KEPT),
     HELP(
         "which part of the data `holdout` gives, or (cifar10) which files of `path` are read; auto: test in data.eval, "
         "train in data.train",
         "取 holdout 划分出的哪一部分，或（cifar10）读 path 中的哪些文件；auto：data.eval 取 test，data.train 取 train")},
    {FIELD(FLOAT, tdm_data_spec, holdout, "0"), .types = ~BIT(TDM_DATA_NONE), RANGE(0, 1), FLAGS(OPEN_MAX | KEPT),
     HELP(
         "split the samples by chance: this fraction is held out for testing; write it in data.train and data.eval; 0: "
         "no split",
         "随机划分样本：此比例留作测试；同时写在 data.train 与 data.eval 中；0 表示不划分")},
    {FIELD(INTS, tdm_data_spec, range, "null"), .types = ~BIT(TDM_DATA_NONE), RANGE(0, 9.3e18), ITEMS(2, 2),
     FLAGS(NULLABLE | KEPT), .unit = "samples",
     HELP("[first, end): use only these samples; null: all", "[first, end)：只用这些样本；null 表示全部")},
    {FIELD(INT, tdm_data_spec, samples, "10000"), .types = BIT(TDM_DATA_SYNTHETIC) | BIT(TDM_DATA_GLYPHS),
     RANGE(1, 9007199254740992.0), .unit = "samples", FLAGS(KEPT),
     HELP("number of samples to generate", "生成的样本数")},
    {FIELD(INT, tdm_data_spec, classes, "null"), .types = BIT(TDM_DATA_SYNTHETIC), RANGE(1, MANY),
     FLAGS(NULLABLE | KEPT),
     HELP("number of classes that labels are drawn from; null: the model's number of outputs",
          "标签的类别数；null 表示等于模型的输出数")},
    {FIELD(INT, tdm_data_spec, seed, "null"), .types = ~BIT(TDM_DATA_NONE), RANGE(0, 9.3e18), FLAGS(NULLABLE | KEPT),
     HELP("seed of generated samples and of `holdout`; null: the job's seed",
          "生成样本及 holdout 划分的种子；null 表示使用任务的 seed")},
    {FIELD(FLOAT, tdm_data_spec, noise, "0.1"), .types = BIT(TDM_DATA_GLYPHS), RANGE(0, 10), FLAGS(KEPT),
     HELP("standard deviation of the pixel noise; a stroke has the value 1", "像素噪声的标准差；笔画为 1")},
    {0},
};

const tdm_field tdm__transform_rows[] = {
    {FIELD(BOOL, tdm_transform_spec, to_float, "false"),
     HELP("convert bytes to floats from 0 to 1, as torchvision's ToTensor",
          "字节转换为 0 到 1 的浮点数（同 torchvision 的 ToTensor）")},
    {0},
};

const tdm_field tdm__normalize_rows[] = {
    {FIELD(NUMBERS, tdm_normalize, mean, "null"), RANGE(-1e9, 1e9), ITEMS(1, 0), FLAGS(NULLABLE),
     HELP("subtracted from each channel; one number applies to all channels", "各通道减去的均值；一个数用于所有通道")},
    {NAMED(NUMBERS, "std", tdm_normalize, stdev, "null"), RANGE(0, 1e9), ITEMS(1, 0), FLAGS(NULLABLE | OPEN_MIN),
     HELP("standard deviation that each channel is divided by", "各通道除以的标准差")},
    {FIELD(TEXTS, tdm_normalize, inputs, "null"), ITEMS(0, TDM_SHAPES_MAX), FLAGS(NULLABLE),
     HELP("the inputs that it is for, by their names in model.inputs; null: the model's only one",
          "所作用的输入在 model.inputs 中的名字；null 表示模型唯一的输入")},
    {0},
};
