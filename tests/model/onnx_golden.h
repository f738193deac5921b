/* Written by make_onnx_golden.py with onnxruntime 1.32.0 and onnx 1.23.2: the files of onnx_test.c whose outputs are tandem's. */
static const struct {
    const char *name, *hash;
} golden[] = {
    {"image", "89a5201dc6dd4d74aef3d145ea0b2318"},
    {"activations", "82cf7fd98fde4e5197ec2902bd8e09bf"},
    {"branches", "652644931d807aa46977f0f187655728"},
    {"series", "8d575a0cbcc57b274d776ea2acc9511c"},
    {"tokens", "11c1813c0fbfa0a8c24b616949cac703"},
    {"inputs", "584e3ac52fed580f4984f8263ccbcd46"},
};
