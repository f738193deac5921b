/* Written by make_onnx_golden.py with onnxruntime 1.32.0 and onnx 1.23.2: the files of onnx_test.c whose outputs are tandem's. */
static const struct {
    const char *name, *hash;
} golden[] = {
    {"image", "7b07cb8257d1c177327eebbd5083a8f2"},
    {"activations", "87d9b79895eec91cc7facd4207df7c65"},
    {"branches", "0b59b84d3349e8020634fdb1b54aa455"},
    {"series", "c070df65b27ae5c357056e18e9a927c4"},
    {"tokens", "11c1813c0fbfa0a8c24b616949cac703"},
    {"inputs", "584e3ac52fed580f4984f8263ccbcd46"},
    {"sizes", "91dcebd34660cdf7d8f82dbbe4411df6"},
    {"windows", "7a2a2e3837d9d98f1342979fc1101932"},
    {"points", "3553754de4d5e477617b4520d3526ea8"},
};
