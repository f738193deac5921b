/* Made by make_compress_golden.py with torch 2.13.0+cpu. */
enum { COMPRESS_SAMPLES = 48, COMPRESS_INPUTS = 12, COMPRESS_STEPS = 12, COMPRESS_PER_DEVICE = 6 };
enum { COMPRESS_RANKS = 2, COMPRESS_SEED = 11, COMPRESS_DATA_SEED = 3 };
enum { COMPRESS_RANK = 2, COMPRESS_START = 3 };
static const double compress_lr = 0.1;
static const double compress_none[] = {
    0x1.a18bf00000000p+0,
    0x1.993dda0000000p+0,
    0x1.9ae7540000000p+0,
    0x1.a21e570000000p+0,
    0x1.8a07aa0000000p+0,
    0x1.80d8b50000000p+0,
    0x1.668e630000000p+0,
    0x1.6072fb0000000p+0,
    0x1.7599eb0000000p+0,
    0x1.74c8a10000000p+0,
    0x1.33528b0000000p+0,
    0x1.1bf5d18000000p+0};
static const double compress_bf16[] = {
    0x1.a18bf00000000p+0,
    0x1.993df00000000p+0,
    0x1.9ae6cb0000000p+0,
    0x1.a21f740000000p+0,
    0x1.8a08ba0000000p+0,
    0x1.80da010000000p+0,
    0x1.6688950000000p+0,
    0x1.6071560000000p+0,
    0x1.759cb80000000p+0,
    0x1.74cd210000000p+0,
    0x1.334cb50000000p+0,
    0x1.1bf6d60000000p+0};
static const double compress_fp16[] = {
    0x1.a18bf00000000p+0,
    0x1.993de90000000p+0,
    0x1.9ae7840000000p+0,
    0x1.a21e640000000p+0,
    0x1.8a07bc0000000p+0,
    0x1.80d8c00000000p+0,
    0x1.668e9d0000000p+0,
    0x1.6072890000000p+0,
    0x1.7599b80000000p+0,
    0x1.74c8e40000000p+0,
    0x1.3352b80000000p+0,
    0x1.1bf4db8000000p+0};
static const double compress_powersgd[] = {
    0x1.a18bf00000000p+0,
    0x1.993dda0000000p+0,
    0x1.9ae7540000000p+0,
    0x1.a21e570000000p+0,
    0x1.8a4ae10000000p+0,
    0x1.7f417b0000000p+0,
    0x1.67c2e00000000p+0,
    0x1.644e3b0000000p+0,
    0x1.7a51ca0000000p+0,
    0x1.76c2bc0000000p+0,
    0x1.3778bc0000000p+0,
    0x1.2344088000000p+0};
