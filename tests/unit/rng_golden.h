/* Made by make_rng_golden.py with PyTorch 2.13.0; do not edit. Floats are their IEEE words. */
#ifndef TDM_RNG_GOLDEN_H
#define TDM_RNG_GOLDEN_H

#include <stddef.h>
#include <stdint.h>

/* `check` is FNV-1a over the numbers as 64-bit units, kept where the numbers are not; `after` is the next
 * torch.rand(1). */
typedef struct golden_row {
    uint64_t seed;
    const void *numbers;
    size_t count;
    uint64_t check;
    uint32_t after;
} golden_row;

static const uint32_t rand_avx2_seed0[10] = {
    0x3efe1558, 0x3f44aa2f, 0x3db533a8, 0x3e073300, 0x3e9d6686, 0x3f2252fb, 0x3efaed86, 0x3f657d67, 0x3ee94812,
    0x3f21ded3,
};
static const uint32_t uniform_avx2_seed0[10] = {
    0xbe02dffc, 0x3d9bfd1a, 0xbede0650, 0xbecd4ce0, 0xbe89f31c, 0xbcc83878, 0xbe079bb7, 0x3e307835, 0xbe2213e5,
    0xbcd31c38,
};
static const uint32_t randn_3_avx2_seed0[3] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149,
};
static const uint32_t randn_15_avx2_seed0[15] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149, 0x3f1184b6, 0xbf8ad1a1, 0xbfb3052d, 0x3ece837a, 0x3f5688e5, 0xbf382144,
    0xbece830b, 0xbf18bd18, 0x3e3a67c6, 0xbf5b4f07, 0x3f8ce099, 0xbf891cab,
};
static const uint32_t randn_16_avx2_seed0[16] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255d, 0x3f594515, 0x3f312783, 0xbea1cc6d, 0xc0075fc1, 0x3ea50138,
    0xbfa1b4f4, 0x3eb330ff, 0x3e9dc3bb, 0x3df56f77, 0x3f9e6b93, 0x3f8ef28e, 0xbe7d367c,
};
static const uint32_t randn_20_avx2_seed0[20] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255d, 0x3f194d8b, 0xbfc70d5b, 0xbeaec6ca, 0x3fed2f4e, 0x3eefaa55,
    0xbe217f5f, 0x3fb8c9db, 0x3e8837a1, 0x3fb1d6c0, 0x3fcb0d00, 0x3f72409c, 0xbf57fb33, 0x3f6e8c30, 0x3fa12737,
    0x4000519a, 0x3d5c1b3a,
};
static const uint32_t randn_100_avx2_seed0[100] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255d, 0x3f594515, 0x3f312783, 0xbea1cc6d, 0xc0075fc1, 0x3ea50138,
    0xbfa1b4f4, 0x3eb330ff, 0x3e9dc3bb, 0x3df56f77, 0x3f9e6b93, 0x3f8ef28e, 0xbe7d367c, 0xbfad23c2, 0xbfd91446,
    0x3f111004, 0x3f4b235d, 0x3f194d8b, 0xbfc70d5b, 0xbeaec6ca, 0x3fed2f4e, 0x3f400c6b, 0xbf15e32b, 0xbe318eeb,
    0x3e3be1a4, 0x3fb1d6c0, 0x3fcb0d00, 0x3f72409c, 0xbf57fb33, 0xbf1d13c8, 0x3d016764, 0xbefc4028, 0x3e7e6070,
    0x3ee11fd0, 0x3de637d6, 0x3f240af8, 0x3ee1df3c, 0xbdd187b9, 0x3f4add9c, 0xbe944f53, 0x3d571217, 0x3f05da2f,
    0x40135755, 0xbfbc04b7, 0xbfcb189e, 0xbf2c4f9f, 0x3f5f71de, 0x3f8715f4, 0x3e361caa, 0xbe6bdd10, 0xbec89408,
    0x3f0b155d, 0xbeca5217, 0xbee47694, 0x3f3e7824, 0x3fc2af75, 0x405a45ad, 0xbfc3fdd9, 0xbf9df823, 0x3fe8ecc2,
    0xbf0d30fc, 0xbf11ba3e, 0x3f6b833f, 0x3f8e2f39, 0x3fa51a98, 0xbfbd34ce, 0x40244d8b, 0xbef23cc2, 0x3eabcd4f,
    0xbfd08dc1, 0xbf0cbc00, 0xbef5acd6, 0xbeffd642, 0xbf8892d0, 0x3f8eb657, 0xbe100c2c, 0x3f4e45de, 0xbdbf2d5c,
    0x3f2fe286, 0xbf569bd6, 0x3a69c925, 0xc02740ad, 0xbfd92613, 0xbe69b837, 0x3e8f5643, 0x3d960206, 0x3f8e8138,
    0x3e908555, 0x3ede52d3, 0x3ee9f40f, 0xbf5d88fa, 0x3f4803cc, 0xbf6d4212, 0x3e535ecc, 0xbeaab9ae, 0xbedb8f9b,
    0x3e6e8222,
};
static const uint32_t normal_7_avx2_seed0[7] = {
    0x3ea9613b, 0x3e969865, 0x3e834a09, 0x3e9f6bb5, 0x3e8e7e97, 0x3e8b4744, 0x3e9dbaf3,
};
static const uint32_t normal_20_avx2_seed0[20] = {
    0x3e8e1248, 0x3e8dccc2, 0x3e9708ba, 0x3e952837, 0x3e9fbb6c, 0x3e89ad03, 0x3e961abf, 0x3eac9325, 0x3e9e64b0,
    0x3e97fc2b, 0x3ea86212, 0x3e9c5309, 0x3ea7d3be, 0x3ea9d815, 0x3ea34a44, 0x3e90f5f4, 0x3ea32454, 0x3ea67e05,
    0x3eae218a, 0x3e9a2678,
};
static const uint32_t randn_3_20_2_avx2_seed0[25] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149, 0xbeb65675, 0x3edfdba8, 0x3efb8c53, 0xbe51000b, 0x3e2a7345, 0x3f5fd77d,
    0xbe12eacf, 0xbde4936f, 0xbf1d13c8, 0x3d016764, 0xbefc4028, 0x3e7e6070, 0x3f1e38f6, 0xbed35ad0, 0xbf575006,
    0xc0143a08, 0xbdd187b9, 0x3f4add9c, 0xbe944f53, 0x3d571217, 0x3f1184b6, 0x3f709762,
};
static const int64_t randperm_10_avx2_seed0[10] = {
    4, 1, 7, 5, 3, 9, 0, 8, 6, 2,
};
static const int64_t randperm_100_avx2_seed0[100] = {
    44, 19, 93, 90, 71, 69, 37, 95, 53, 91, 81, 42, 80, 85, 74, 56, 76, 63, 82, 40, 26, 92, 57, 10, 16, 66, 89, 41, 97,
    8, 31, 24, 35, 30, 65, 7, 98, 23, 20, 29, 78, 61, 94, 15, 4, 52, 59, 5, 54, 46, 3, 28, 2, 70, 6, 60, 49, 68, 55, 72,
    79, 77, 45, 1, 32, 34, 11, 0, 22, 12, 87, 50, 25, 47, 36, 96, 9, 83, 62, 84, 18, 17, 75, 67, 13, 48, 39, 21, 64, 88,
    38, 27, 14, 73, 33, 58, 86, 43, 99, 51,
};
static const int64_t randperm_1_avx2_seed0[1] = {
    0,
};
static const int64_t randint_100_avx2_seed0[10] = {
    44, 39, 33, 60, 63, 79, 27, 3, 97, 83,
};
static const int64_t randint_below_avx2_seed0[10] = {
    209652399, 130329139, 118924923, 136432840, 172929863, 195187459, 192771782, 149257583, 208970762, 262266583,
};
static const int64_t randint_wide_avx2_seed0[10] = {
    130329135, 136432832, 195187451, 149257575, 262266579, 40294130, 204159575, 243580376, 97308044, 172507841,
};
static const int64_t randint_40_avx2_seed0[10] = {
    -358231004625, -593374360384, 291447657211, -258354086553, -1058178736429, 91845220082, 155896724055, -798620336680,
    -720383455860, 251159659201,
};
static const uint32_t rand_avx2_seed2[10] = {
    0x3f61dc66, 0x3f6a3db3, 0x3ec406b8, 0x3f75950e, 0x3ec7e8d4, 0x3f19d447, 0x3e835d78, 0x3f4b2c14, 0x3f70d666,
    0x3e0861e4,
};
static const uint32_t uniform_avx2_seed2[10] = {
    0x3e259532, 0x3e3eb919, 0xbe59f5ec, 0x3e60bf2a, 0xbe5422c2, 0xbd4a0cac, 0xbe9d79e6, 0x3dc30878, 0x3e528332,
    0xbeccdb4a,
};
static const uint32_t randn_3_avx2_seed2[3] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7,
};
static const uint32_t randn_15_avx2_seed2[15] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7, 0x3e6bdc6c, 0xbf8fb9c2, 0xbe3eccd8, 0x400d532c, 0xbf2353c6, 0x3eec5e56,
    0x3e88e237, 0x3f08ef83, 0x3f4f3209, 0x3f8e1dfe, 0xbfd84b55, 0xbf7d2c7a,
};
static const uint32_t randn_16_avx2_seed2[16] = {
    0x3ff6a529, 0x3fbe5f53, 0x3f669567, 0xc006c0db, 0x3f2dacd5, 0xbf9e0591, 0xbd306786, 0xbfcd65ba, 0xbf408bf0,
    0x3fd3095b, 0xbec8f2f6, 0xbfb3a966, 0xbf3a566e, 0xbf0f36d1, 0xbf44d2a0, 0x3f432f9f,
};
static const uint32_t randn_20_avx2_seed2[20] = {
    0x3ff6a529, 0x3fbe5f53, 0x3f669567, 0xc006c0db, 0xbf4214e2, 0x3f8a0650, 0x3f4d0144, 0x3fd71e93, 0x3eb63345,
    0xbf2fc686, 0xbefc9934, 0x3e774893, 0xbe6d2eed, 0x3d2b0c00, 0xbe80ce7a, 0x3f5c1fb0, 0xbe9e9482, 0xbeca9a91,
    0x3f4dac3c, 0xbf1f20e0,
};
static const uint32_t randn_100_avx2_seed2[100] = {
    0x3ff6a529, 0x3fbe5f53, 0x3f669567, 0xc006c0db, 0x3f2dacd5, 0xbf9e0591, 0xbd306786, 0xbfcd65ba, 0xbf408bf0,
    0x3fd3095b, 0xbec8f2f6, 0xbfb3a966, 0xbf3a566e, 0xbf0f36d1, 0xbf44d2a0, 0x3f432f9f, 0x3fd23771, 0xbe236d85,
    0xbefeaae4, 0x3ee111d8, 0xbf4214e2, 0x3f8a0650, 0x3f4d0144, 0x3fd71e93, 0x3fa3ba59, 0x3fa5f12f, 0x3f1c4788,
    0x3faad8b0, 0xbe6d2eed, 0x3d2b0c00, 0xbe80ce7a, 0x3f5c1fb0, 0xbfb13cfd, 0xbf5f0955, 0xbe64ba09, 0x3fdbd280,
    0x3ea34448, 0xbed95a8d, 0x3e9c8774, 0xbf464bb2, 0xbfc75e89, 0x3f7ee202, 0xbf6139a5, 0xbf19e472, 0xbfa31763,
    0x4007dbb6, 0xbf9e091d, 0xbef9cfd9, 0xbf69f04e, 0xbf287baf, 0x3d9fcafb, 0x3f069b67, 0xbef9da0d, 0x3f987ec8,
    0xbf5062ce, 0xbf3c6a06, 0xbfb39da0, 0x3d137895, 0xbd82005f, 0x3f2cf519, 0xbdc84efb, 0x3fec1ba8, 0xbf979eec,
    0x3fb11825, 0x3fb8fa25, 0x3f5b3dda, 0x400df4f4, 0x3f05ee2d, 0x3eb17bac, 0xbe4a1141, 0xbf86fcc5, 0x3fa3955c,
    0xbe30529c, 0x3f061700, 0x3d67ec48, 0x3eda437d, 0x3f133388, 0xbf244808, 0xc00d35a2, 0xbf4034a1, 0x3c32104d,
    0xbead6fa3, 0xbfab9b63, 0xbf15dad8, 0x3f24088a, 0x3f154fb4, 0x3f88910e, 0xbee67a81, 0xbf2dc2c1, 0x3f130661,
    0x3e40414d, 0xbeb71a5d, 0x3e87a238, 0x3fa2f72e, 0xbaabd149, 0xbe9b71f4, 0xbf7c873e, 0x3dfc8440, 0x3eb321de,
    0x3f1e061c,
};
static const uint32_t normal_7_avx2_seed2[7] = {
    0x3e9d0c37, 0x3e9aeb44, 0x3e9c003b, 0x3e9bf567, 0x3e8e1a19, 0x3e97b127, 0x3eb03644,
};
static const uint32_t normal_20_avx2_seed2[20] = {
    0x3ead54e5, 0x3ea8d46d, 0x3ea2d2c7, 0x3e840a1b, 0x3e91d635, 0x3ea4a459, 0x3ea1ccda, 0x3eaacf3f, 0x3e9d3e78,
    0x3e9291a9, 0x3e948c4c, 0x3e9c12a6, 0x3e973a6a, 0x3e9a0712, 0x3e97061d, 0x3ea267ab, 0x3e966dac, 0x3e958c45,
    0x3ea1d3b1, 0x3e933c20,
};
static const uint32_t randn_3_20_2_avx2_seed2[25] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7, 0x3fe4d648, 0xbef4c259, 0xbe78afef, 0xbf6f2551, 0xbf8e3219, 0x3dbb7c4a,
    0xc0144876, 0xbe5e020f, 0xbfb13cfd, 0xbf5f0955, 0xbe64ba09, 0x3fdbd280, 0xbf178d59, 0xbd812d24, 0xbf541c22,
    0x3ea96b85, 0xbfc75e89, 0x3f7ee202, 0xbf6139a5, 0xbf19e472, 0x3e6bdc6c, 0xbea7cffb,
};
static const int64_t randperm_10_avx2_seed2[10] = {
    2, 6, 1, 8, 4, 5, 0, 9, 3, 7,
};
static const int64_t randperm_100_avx2_seed2[100] = {
    42, 96, 62, 98, 46, 95, 60, 24, 78, 16, 68, 70, 11, 13, 97, 52, 99, 19, 71, 10, 89, 86, 18, 40, 5, 38, 9, 82, 83,
    43, 32, 94, 67, 93, 75, 59, 79, 1, 50, 73, 66, 45, 63, 58, 22, 3, 87, 4, 61, 51, 12, 74, 21, 20, 6, 35, 44, 48, 37,
    33, 15, 88, 31, 69, 27, 81, 85, 56, 7, 65, 47, 41, 29, 80, 57, 84, 36, 17, 34, 72, 2, 91, 8, 53, 30, 90, 26, 23, 54,
    76, 14, 55, 0, 64, 77, 39, 25, 92, 49, 28,
};
static const int64_t randperm_1_avx2_seed2[1] = {
    0,
};
static const int64_t randint_100_avx2_seed2[10] = {
    42, 67, 76, 14, 26, 35, 20, 24, 50, 13,
};
static const int64_t randint_below_avx2_seed2[10] = {
    266460262, 199900602, 56755046, 250975499, 191100016, 127521870, 155299520, 147532824, 133224035, 35788923,
};
static const int64_t randint_wide_avx2_seed2[10] = {
    199900595, 250975502, 127521863, 147532820, 35788921, 160953558, 93410762, 91090292, 76737383, 111190146,
};
static const int64_t randint_40_avx2_seed2[10] = {
    -658003837517, 395924837646, -640896347065, -289494324204, -659510126471, 902372521174, 319800038858, -724416205452,
    -673696257177, -448176021374,
};
static const golden_row rand_avx2[] = {
    {UINT64_C(0), rand_avx2_seed0, 10, UINT64_C(0x51e991166800241f), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x7de70b2f7d70683b), 0x3f238090},
    {UINT64_C(42), rand_avx2_seed2, 10, UINT64_C(0x9b1220103478979b), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xc01e53e1e16ed240), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x24c4fb1cf5b71e1d), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x828bf1a671d2a17b), 0x3e4629fc},
};
static const golden_row rand_1300_avx2[] = {
    {UINT64_C(0), NULL, 1300, UINT64_C(0xb2683bc42de81133), 0x3edc9d48},
    {UINT64_C(1), NULL, 1300, UINT64_C(0x2df85822dcf2c560), 0x3ed0c75c},
    {UINT64_C(42), NULL, 1300, UINT64_C(0x58297d9de1f2b026), 0x3e80d0dc},
    {UINT64_C(123456789), NULL, 1300, UINT64_C(0xa13957449d598cc7), 0x3df6e8d0},
    {UINT64_C(1099511627783), NULL, 1300, UINT64_C(0x7846c95291e940b0), 0x3f72ec08},
    {UINT64_C(18446744073709551615), NULL, 1300, UINT64_C(0x66dde8f3cdc5f6f0), 0x3f4f005c},
};
static const golden_row uniform_avx2[] = {
    {UINT64_C(0), uniform_avx2_seed0, 10, UINT64_C(0x79f761d76bd369c2), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0xef89711d7786cbe0), 0x3f238090},
    {UINT64_C(42), uniform_avx2_seed2, 10, UINT64_C(0x0cbba52940e52bda), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x1acd2dd711f29a4e), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x69a4cac2477a756f), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0xebab7a62d860b33d), 0x3e4629fc},
};
static const golden_row uniform_700_avx2[] = {
    {UINT64_C(0), NULL, 700, UINT64_C(0x67899ce54d317968), 0x3e882ec2},
    {UINT64_C(1), NULL, 700, UINT64_C(0x3bf6ad87e0491ff3), 0x3e397620},
    {UINT64_C(42), NULL, 700, UINT64_C(0xa77732661291444a), 0x3f4d89b9},
    {UINT64_C(123456789), NULL, 700, UINT64_C(0x952638a74c238931), 0x3f399863},
    {UINT64_C(1099511627783), NULL, 700, UINT64_C(0x7219dcab674e83ae), 0x3f1b0626},
    {UINT64_C(18446744073709551615), NULL, 700, UINT64_C(0x06468a6a28b131ee), 0x3f0b3093},
};
static const golden_row randn_3_avx2[] = {
    {UINT64_C(0), randn_3_avx2_seed0, 3, UINT64_C(0x7879e6af639862a8), 0x3ee94812},
    {UINT64_C(1), NULL, 3, UINT64_C(0xd8148c4a312168f9), 0x3f11cb4f},
    {UINT64_C(42), randn_3_avx2_seed2, 3, UINT64_C(0x97b0c40b2b8e7ff9), 0x3f70d666},
    {UINT64_C(123456789), NULL, 3, UINT64_C(0x32b5cad4bf3ad9cf), 0x3f4aaefa},
    {UINT64_C(1099511627783), NULL, 3, UINT64_C(0x08496ab174bef5b0), 0x3ebb0ab8},
    {UINT64_C(18446744073709551615), NULL, 3, UINT64_C(0x7bcf999e03c85c1e), 0x3f17b1d9},
};
static const golden_row randn_15_avx2[] = {
    {UINT64_C(0), randn_15_avx2_seed0, 15, UINT64_C(0xe96e3f95cb4140b3), 0x3e3421cc},
    {UINT64_C(1), NULL, 15, UINT64_C(0xcda3b097581311b1), 0x3f547cd7},
    {UINT64_C(42), randn_15_avx2_seed2, 15, UINT64_C(0x11635d3532e80831), 0x3f62d1cb},
    {UINT64_C(123456789), NULL, 15, UINT64_C(0xbbd0650296423111), 0x3e0c9c1c},
    {UINT64_C(1099511627783), NULL, 15, UINT64_C(0x95b9bf590000be1e), 0x3f206c2c},
    {UINT64_C(18446744073709551615), NULL, 15, UINT64_C(0x1c36d50ca046dc38), 0x3ed5b5ac},
};
static const golden_row randn_16_avx2[] = {
    {UINT64_C(0), randn_16_avx2_seed0, 16, UINT64_C(0xf1048bdebedebeff), 0x3f329a58},
    {UINT64_C(1), NULL, 16, UINT64_C(0x353ba16ee1091f14), 0x3f128d86},
    {UINT64_C(42), randn_16_avx2_seed2, 16, UINT64_C(0x0ba2178f6e02a950), 0x3f62ac63},
    {UINT64_C(123456789), NULL, 16, UINT64_C(0x4c6304f81152d7ad), 0x3f28ee63},
    {UINT64_C(1099511627783), NULL, 16, UINT64_C(0x8884a78dc8e1af4d), 0x3f386ada},
    {UINT64_C(18446744073709551615), NULL, 16, UINT64_C(0xefffeb8a8f30e951), 0x3f4cce1b},
};
static const golden_row randn_20_avx2[] = {
    {UINT64_C(0), randn_20_avx2_seed0, 20, UINT64_C(0xd447db80528d1c9d), 0x3e551ff8},
    {UINT64_C(1), NULL, 20, UINT64_C(0x8a82a46df064707a), 0x3f7065f7},
    {UINT64_C(42), randn_20_avx2_seed2, 20, UINT64_C(0x9bad0632da627020), 0x3f13f2eb},
    {UINT64_C(123456789), NULL, 20, UINT64_C(0x9d770b5645b957c8), 0x3edd3694},
    {UINT64_C(1099511627783), NULL, 20, UINT64_C(0xbad6b4ccdfb47870), 0x3ec70930},
    {UINT64_C(18446744073709551615), NULL, 20, UINT64_C(0xe6913a1bb17c6788), 0x3f4bf71a},
};
static const golden_row randn_100_avx2[] = {
    {UINT64_C(0), randn_100_avx2_seed0, 100, UINT64_C(0x4fd3d7145d494166), 0x3ec0491e},
    {UINT64_C(1), NULL, 100, UINT64_C(0x00876a8882340366), 0x3f5cba4a},
    {UINT64_C(42), randn_100_avx2_seed2, 100, UINT64_C(0x1db15e6611814b43), 0x3f1403f8},
    {UINT64_C(123456789), NULL, 100, UINT64_C(0x7e50c51a1a8fb1ba), 0x3d361890},
    {UINT64_C(1099511627783), NULL, 100, UINT64_C(0xbd3e89a50bbca62d), 0x3e6e0d30},
    {UINT64_C(18446744073709551615), NULL, 100, UINT64_C(0x0f16b72bcb9c372d), 0x3ec90ba2},
};
static const golden_row randn_30011_avx2[] = {
    {UINT64_C(0), NULL, 30011, UINT64_C(0xe321caa18b364e41), 0x3ad59600},
    {UINT64_C(1), NULL, 30011, UINT64_C(0x0dcc6e084698cad8), 0x3ee43802},
    {UINT64_C(42), NULL, 30011, UINT64_C(0xc3a65b5d4a9288b1), 0x3f759c8e},
    {UINT64_C(123456789), NULL, 30011, UINT64_C(0x8cf21e013bd3c31d), 0x3f7f76d1},
    {UINT64_C(1099511627783), NULL, 30011, UINT64_C(0x8c4e77be6dab1c55), 0x3f463168},
    {UINT64_C(18446744073709551615), NULL, 30011, UINT64_C(0xc37780ccc80e8a0f), 0x3ef32320},
};
static const golden_row normal_7_avx2[] = {
    {UINT64_C(0), normal_7_avx2_seed0, 7, UINT64_C(0x9ff820187807e729), 0x3f329a58},
    {UINT64_C(1), NULL, 7, UINT64_C(0x878cb3909addf7db), 0x3f128d86},
    {UINT64_C(42), normal_7_avx2_seed2, 7, UINT64_C(0x6859c9491240cf20), 0x3f62ac63},
    {UINT64_C(123456789), NULL, 7, UINT64_C(0x937738718b9624f9), 0x3f28ee63},
    {UINT64_C(1099511627783), NULL, 7, UINT64_C(0xed5d88e9512f8398), 0x3f386ada},
    {UINT64_C(18446744073709551615), NULL, 7, UINT64_C(0x17845283e1d5adaa), 0x3f4cce1b},
};
static const golden_row normal_20_avx2[] = {
    {UINT64_C(0), normal_20_avx2_seed0, 20, UINT64_C(0x411776ee7fd627cd), 0x3e551ff8},
    {UINT64_C(1), NULL, 20, UINT64_C(0x5c02a30f0ee25e08), 0x3f7065f7},
    {UINT64_C(42), normal_20_avx2_seed2, 20, UINT64_C(0x8cf61883bdb11933), 0x3f13f2eb},
    {UINT64_C(123456789), NULL, 20, UINT64_C(0x47c7374a069e8c8f), 0x3edd3694},
    {UINT64_C(1099511627783), NULL, 20, UINT64_C(0x8e57b89140cd4c2f), 0x3ec70930},
    {UINT64_C(18446744073709551615), NULL, 20, UINT64_C(0xe7f86c58a29468ff), 0x3f4bf71a},
};
static const golden_row randn_3_20_2_avx2[] = {
    {UINT64_C(0), randn_3_20_2_avx2_seed0, 25, UINT64_C(0x332a81f806fadbbc), 0x3e8e771c},
    {UINT64_C(1), NULL, 25, UINT64_C(0x39e424b3fe3a0134), 0x3eb61402},
    {UINT64_C(42), randn_3_20_2_avx2_seed2, 25, UINT64_C(0xabeb6da1fa9a29f8), 0x3f4100bd},
    {UINT64_C(123456789), NULL, 25, UINT64_C(0x612c4c7668868b46), 0x3f723a43},
    {UINT64_C(1099511627783), NULL, 25, UINT64_C(0xd0797ebeb2275abf), 0x3f3ca304},
    {UINT64_C(18446744073709551615), NULL, 25, UINT64_C(0x56590eef65531fd5), 0x3c09cf40},
};
static const golden_row randperm_10_avx2[] = {
    {UINT64_C(0), randperm_10_avx2_seed0, 10, UINT64_C(0x5fb755c895d353d6), 0x3f21ded3},
    {UINT64_C(1), NULL, 10, UINT64_C(0xec1661980f58e612), 0x3ee0a780},
    {UINT64_C(42), randperm_10_avx2_seed2, 10, UINT64_C(0xb3b37708c70ce962), 0x3e0861e4},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xe5da0f4b194dc2ec), 0x3e9929c8},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x1bb1a70084552d3a), 0x3f59ecb9},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x57ebda8afe9dd412), 0x3f177f20},
};
static const golden_row randperm_100_avx2[] = {
    {UINT64_C(0), randperm_100_avx2_seed0, 100, UINT64_C(0x490c6fe9c8e12d99), 0x3e592e30},
    {UINT64_C(1), NULL, 100, UINT64_C(0xe04d693d8a861d23), 0x3eb28136},
    {UINT64_C(42), randperm_100_avx2_seed2, 100, UINT64_C(0x5f14316cf3bcd153), 0x3c84bb80},
    {UINT64_C(123456789), NULL, 100, UINT64_C(0x54ac58904131f755), 0x3f1d1652},
    {UINT64_C(1099511627783), NULL, 100, UINT64_C(0xeecdc018740b7121), 0x3f63059f},
    {UINT64_C(18446744073709551615), NULL, 100, UINT64_C(0x6f0a70f8f06ec57f), 0x3f13cb08},
};
static const golden_row randperm_1_avx2[] = {
    {UINT64_C(0), randperm_1_avx2_seed0, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3efe1558},
    {UINT64_C(1), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f41f425},
    {UINT64_C(42), randperm_1_avx2_seed2, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f61dc66},
    {UINT64_C(123456789), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3ecf7d70},
    {UINT64_C(1099511627783), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f08f0af},
    {UINT64_C(18446744073709551615), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f7e69a3},
};
static const golden_row randint_100_avx2[] = {
    {UINT64_C(0), randint_100_avx2_seed0, 10, UINT64_C(0xc99f34ca0b764ddd), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x6f5870861fe06962), 0x3f238090},
    {UINT64_C(42), randint_100_avx2_seed2, 10, UINT64_C(0xf38087c5132455ae), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x3b72cd342d77c89e), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x7f43cb58ee3aa3ce), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x5135eb452fcbe2bc), 0x3e4629fc},
};
static const golden_row randint_below_avx2[] = {
    {UINT64_C(0), randint_below_avx2_seed0, 10, UINT64_C(0xc5c74f9ad6fe7fee), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x4d12726886590908), 0x3f238090},
    {UINT64_C(42), randint_below_avx2_seed2, 10, UINT64_C(0xb36228364c6931b6), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xac4f4db0ab092983), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x9c74bbdc457e2ec4), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0xa8e9ae814676af8d), 0x3e4629fc},
};
static const golden_row randint_wide_avx2[] = {
    {UINT64_C(0), randint_wide_avx2_seed0, 10, UINT64_C(0x181fcfe13c8ecc21), 0x3f2e7de6},
    {UINT64_C(1), NULL, 10, UINT64_C(0xc53564b3d41c8b05), 0x3ea0a9fc},
    {UINT64_C(42), randint_wide_avx2_seed2, 10, UINT64_C(0xbd957cb79a4dfc2f), 0x3e8a0d2a},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x4a7567678aa43572), 0x3e7e8548},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x914f70f2704a5560), 0x3f620444},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0xd440d6c84e5a1f74), 0x3d3d5370},
};
static const golden_row randint_40_avx2[] = {
    {UINT64_C(0), randint_40_avx2_seed0, 10, UINT64_C(0xec7bd25cdc8ecc21), 0x3f2e7de6},
    {UINT64_C(1), NULL, 10, UINT64_C(0x53f5a5e5541c8b05), 0x3ea0a9fc},
    {UINT64_C(42), randint_40_avx2_seed2, 10, UINT64_C(0x41bf9f9dea4dfc2f), 0x3e8a0d2a},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x266704f5baa43572), 0x3e7e8548},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x6480811f604a5560), 0x3f620444},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x0d6674736e5a1f74), 0x3d3d5370},
};
static const uint32_t rand_generic_seed0[10] = {
    0x3efe1558, 0x3f44aa2f, 0x3db533a8, 0x3e073300, 0x3e9d6686, 0x3f2252fb, 0x3efaed86, 0x3f657d67, 0x3ee94812,
    0x3f21ded3,
};
static const uint32_t uniform_generic_seed0[10] = {
    0xbe02dffc, 0x3d9bfd18, 0xbede0650, 0xbecd4ce0, 0xbe89f31c, 0xbcc83880, 0xbe079bb8, 0x3e307834, 0xbe2213e4,
    0xbcd31c40,
};
static const uint32_t randn_3_generic_seed0[3] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149,
};
static const uint32_t randn_15_generic_seed0[15] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149, 0x3f1184b6, 0xbf8ad1a1, 0xbfb3052d, 0x3ece837a, 0x3f5688e5, 0xbf382144,
    0xbece830b, 0xbf18bd18, 0x3e3a67c6, 0xbf5b4f07, 0x3f8ce099, 0xbf891cab,
};
static const uint32_t randn_16_generic_seed0[16] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255e, 0x3f594515, 0x3f312784, 0xbea1cc6d, 0xc0075fc2, 0x3ea50138,
    0xbfa1b4f4, 0x3eb330ff, 0x3e9dc3ba, 0x3df56f77, 0x3f9e6b93, 0x3f8ef28e, 0xbe7d365a,
};
static const uint32_t randn_20_generic_seed0[20] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255e, 0x3f194d8b, 0xbfc70d5b, 0xbeaec6c7, 0x3fed2f4e, 0x3eefaa55,
    0xbe217f5f, 0x3fb8c9db, 0x3e8837a1, 0x3fb1d6c0, 0x3fcb0d01, 0x3f72409c, 0xbf57fb34, 0x3f6e8c31, 0x3fa12737,
    0x4000519a, 0x3d5c1b39,
};
static const uint32_t randn_100_generic_seed0[100] = {
    0xbf901b85, 0xbf93808a, 0xbe804bd6, 0xbede255e, 0x3f594515, 0x3f312784, 0xbea1cc6d, 0xc0075fc2, 0x3ea50138,
    0xbfa1b4f4, 0x3eb330ff, 0x3e9dc3ba, 0x3df56f77, 0x3f9e6b93, 0x3f8ef28e, 0xbe7d365a, 0xbfad23c2, 0xbfd91447,
    0x3f111002, 0x3f4b235e, 0x3f194d8b, 0xbfc70d5b, 0xbeaec6c7, 0x3fed2f4e, 0x3f400c6a, 0xbf15e324, 0xbe318efd,
    0x3e3be1a3, 0x3fb1d6c0, 0x3fcb0d01, 0x3f72409c, 0xbf57fb34, 0xbf1d13c8, 0x3d016764, 0xbefc402a, 0x3e7e6070,
    0x3ee11fd1, 0x3de637d6, 0x3f240af8, 0x3ee1df3c, 0xbdd187b9, 0x3f4add9c, 0xbe944f4e, 0x3d571217, 0x3f05da2e,
    0x40135755, 0xbfbc04b7, 0xbfcb189e, 0xbf2c4f9f, 0x3f5f71de, 0x3f8715f5, 0x3e361cc5, 0xbe6bdd10, 0xbec89408,
    0x3f0b155c, 0xbeca5216, 0xbee47695, 0x3f3e7824, 0x3fc2af75, 0x405a45ad, 0xbfc3fdd9, 0xbf9df823, 0x3fe8ecc2,
    0xbf0d30fc, 0xbf11ba3d, 0x3f6b833d, 0x3f8e2f39, 0x3fa51a96, 0xbfbd34d1, 0x40244d8b, 0xbef23cc2, 0x3eabcd4e,
    0xbfd08dc1, 0xbf0cbc00, 0xbef5acd6, 0xbeffd657, 0xbf8892cd, 0x3f8eb657, 0xbe100c2c, 0x3f4e45df, 0xbdbf2d5b,
    0x3f2fe286, 0xbf569bd6, 0x3a69c925, 0xc02740ad, 0xbfd92615, 0xbe69b830, 0x3e8f5643, 0x3d960206, 0x3f8e8138,
    0x3e908556, 0x3ede52d3, 0x3ee9f424, 0xbf5d88f4, 0x3f4803cc, 0xbf6d4212, 0x3e535ecc, 0xbeaab9ae, 0xbedb8f9b,
    0x3e6e8221,
};
static const uint32_t normal_7_generic_seed0[7] = {
    0x3ea9613b, 0x3e969865, 0x3e834a09, 0x3e9f6bb5, 0x3e8e7e97, 0x3e8b4744, 0x3e9dbaf3,
};
static const uint32_t normal_20_generic_seed0[20] = {
    0x3e8e1248, 0x3e8dccc2, 0x3e9708ba, 0x3e952837, 0x3e9fbb6c, 0x3e89ad03, 0x3e961abf, 0x3eac9325, 0x3e9e64b0,
    0x3e97fc2b, 0x3ea86212, 0x3e9c5309, 0x3ea7d3be, 0x3ea9d815, 0x3ea34a44, 0x3e90f5f4, 0x3ea32454, 0x3ea67e05,
    0x3eae218a, 0x3e9a2678,
};
static const uint32_t randn_3_20_2_generic_seed0[25] = {
    0x3fc53f5c, 0xbe963c50, 0xc00b7149, 0xbeb65674, 0x3edfdbaa, 0x3efb8c57, 0xbe51000b, 0x3e2a7344, 0x3f5fd77d,
    0xbe12eae9, 0xbde4936f, 0xbf1d13c8, 0x3d016764, 0xbefc402a, 0x3e7e6070, 0x3f1e38f6, 0xbed35ad0, 0xbf575004,
    0xc0143a08, 0xbdd187b9, 0x3f4add9c, 0xbe944f4e, 0x3d571217, 0x3f1184b6, 0x3f709762,
};
static const int64_t randperm_10_generic_seed0[10] = {
    4, 1, 7, 5, 3, 9, 0, 8, 6, 2,
};
static const int64_t randperm_100_generic_seed0[100] = {
    44, 19, 93, 90, 71, 69, 37, 95, 53, 91, 81, 42, 80, 85, 74, 56, 76, 63, 82, 40, 26, 92, 57, 10, 16, 66, 89, 41, 97,
    8, 31, 24, 35, 30, 65, 7, 98, 23, 20, 29, 78, 61, 94, 15, 4, 52, 59, 5, 54, 46, 3, 28, 2, 70, 6, 60, 49, 68, 55, 72,
    79, 77, 45, 1, 32, 34, 11, 0, 22, 12, 87, 50, 25, 47, 36, 96, 9, 83, 62, 84, 18, 17, 75, 67, 13, 48, 39, 21, 64, 88,
    38, 27, 14, 73, 33, 58, 86, 43, 99, 51,
};
static const int64_t randperm_1_generic_seed0[1] = {
    0,
};
static const int64_t randint_100_generic_seed0[10] = {
    44, 39, 33, 60, 63, 79, 27, 3, 97, 83,
};
static const int64_t randint_below_generic_seed0[10] = {
    209652399, 130329139, 118924923, 136432840, 172929863, 195187459, 192771782, 149257583, 208970762, 262266583,
};
static const int64_t randint_wide_generic_seed0[10] = {
    130329135, 136432832, 195187451, 149257575, 262266579, 40294130, 204159575, 243580376, 97308044, 172507841,
};
static const int64_t randint_40_generic_seed0[10] = {
    -358231004625, -593374360384, 291447657211, -258354086553, -1058178736429, 91845220082, 155896724055, -798620336680,
    -720383455860, 251159659201,
};
static const uint32_t rand_generic_seed2[10] = {
    0x3f61dc66, 0x3f6a3db3, 0x3ec406b8, 0x3f75950e, 0x3ec7e8d4, 0x3f19d447, 0x3e835d78, 0x3f4b2c14, 0x3f70d666,
    0x3e0861e4,
};
static const uint32_t uniform_generic_seed2[10] = {
    0x3e259530, 0x3e3eb918, 0xbe59f5ec, 0x3e60bf28, 0xbe5422c2, 0xbd4a0cb0, 0xbe9d79e6, 0x3dc30878, 0x3e528330,
    0xbeccdb4a,
};
static const uint32_t randn_3_generic_seed2[3] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7,
};
static const uint32_t randn_15_generic_seed2[15] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7, 0x3e6bdc6c, 0xbf8fb9c2, 0xbe3eccd8, 0x400d532c, 0xbf2353c6, 0x3eec5e56,
    0x3e88e237, 0x3f08ef83, 0x3f4f3209, 0x3f8e1dfe, 0xbfd84b55, 0xbf7d2c7a,
};
static const uint32_t randn_16_generic_seed2[16] = {
    0x3ff6a527, 0x3fbe5f54, 0x3f669567, 0xc006c0dd, 0x3f2dacd5, 0xbf9e0592, 0xbd306787, 0xbfcd65ba, 0xbf408bff,
    0x3fd3095a, 0xbec8f2f6, 0xbfb3a962, 0xbf3a566d, 0xbf0f36cc, 0xbf44d2a1, 0x3f432f9f,
};
static const uint32_t randn_20_generic_seed2[20] = {
    0x3ff6a527, 0x3fbe5f54, 0x3f669567, 0xc006c0dd, 0xbf4214e2, 0x3f8a0650, 0x3f4d0143, 0x3fd71e93, 0x3eb63341,
    0xbf2fc686, 0xbefc9934, 0x3e774894, 0xbe6d2eed, 0x3d2b0c00, 0xbe80ce7a, 0x3f5c1fb0, 0xbe9e9487, 0xbeca9a91,
    0x3f4dac3c, 0xbf1f20e0,
};
static const uint32_t randn_100_generic_seed2[100] = {
    0x3ff6a527, 0x3fbe5f54, 0x3f669567, 0xc006c0dd, 0x3f2dacd5, 0xbf9e0592, 0xbd306787, 0xbfcd65ba, 0xbf408bff,
    0x3fd3095a, 0xbec8f2f6, 0xbfb3a962, 0xbf3a566d, 0xbf0f36cc, 0xbf44d2a1, 0x3f432f9f, 0x3fd23771, 0xbe236d7b,
    0xbefeaae2, 0x3ee111d7, 0xbf4214e2, 0x3f8a0650, 0x3f4d0143, 0x3fd71e93, 0x3fa3ba59, 0x3fa5f12f, 0x3f1c4788,
    0x3faad8b0, 0xbe6d2eed, 0x3d2b0c00, 0xbe80ce7a, 0x3f5c1fb0, 0xbfb13d01, 0xbf5f0955, 0xbe64ba0a, 0x3fdbd27d,
    0x3ea34434, 0xbed95a8d, 0x3e9c8760, 0xbf464bb2, 0xbfc75e87, 0x3f7ee202, 0xbf6139a5, 0xbf19e481, 0xbfa31765,
    0x4007dbb6, 0xbf9e091f, 0xbef9cfd9, 0xbf69f04e, 0xbf287baf, 0x3d9fcafb, 0x3f069b67, 0xbef9da0d, 0x3f987ec9,
    0xbf5062ce, 0xbf3c6a07, 0xbfb39da0, 0x3d1378bf, 0xbd82005f, 0x3f2cf519, 0xbdc84efb, 0x3fec1ba8, 0xbf979eec,
    0x3fb11825, 0x3fb8fa24, 0x3f5b3ddb, 0x400df4f4, 0x3f05ee2e, 0x3eb17bac, 0xbe4a1141, 0xbf86fccd, 0x3fa39558,
    0xbe3052ca, 0x3f061700, 0x3d67ec47, 0x3eda437e, 0x3f133388, 0xbf244809, 0xc00d35a0, 0xbf4034ab, 0x3c32104d,
    0xbead6fac, 0xbfab9b66, 0xbf15dad8, 0x3f24088a, 0x3f154fb4, 0x3f88910e, 0xbee67a83, 0xbf2dc2c1, 0x3f130661,
    0x3e40414d, 0xbeb71a5b, 0x3e87a238, 0x3fa2f72e, 0xbaabd149, 0xbe9b71f0, 0xbf7c873e, 0x3dfc8440, 0x3eb321de,
    0x3f1e061c,
};
static const uint32_t normal_7_generic_seed2[7] = {
    0x3e9d0c37, 0x3e9aeb44, 0x3e9c003b, 0x3e9bf567, 0x3e8e1a19, 0x3e97b127, 0x3eb03644,
};
static const uint32_t normal_20_generic_seed2[20] = {
    0x3ead54e5, 0x3ea8d46d, 0x3ea2d2c7, 0x3e840a1b, 0x3e91d635, 0x3ea4a459, 0x3ea1ccda, 0x3eaacf3f, 0x3e9d3e77,
    0x3e9291a9, 0x3e948c4c, 0x3e9c12a6, 0x3e973a6a, 0x3e9a0712, 0x3e97061d, 0x3ea267ab, 0x3e966dac, 0x3e958c45,
    0x3ea1d3b1, 0x3e933c20,
};
static const uint32_t randn_3_20_2_generic_seed2[25] = {
    0x3eac62ae, 0x3e03e69d, 0x3e7016e7, 0x3fe4d642, 0xbef4c25a, 0xbe78afef, 0xbf6f2555, 0xbf8e321b, 0x3dbb7c4a,
    0xc0144876, 0xbe5e020f, 0xbfb13d01, 0xbf5f0955, 0xbe64ba0a, 0x3fdbd27d, 0xbf178d55, 0xbd812d24, 0xbf541c22,
    0x3ea96b85, 0xbfc75e87, 0x3f7ee202, 0xbf6139a5, 0xbf19e481, 0x3e6bdc6c, 0xbea7cffb,
};
static const int64_t randperm_10_generic_seed2[10] = {
    2, 6, 1, 8, 4, 5, 0, 9, 3, 7,
};
static const int64_t randperm_100_generic_seed2[100] = {
    42, 96, 62, 98, 46, 95, 60, 24, 78, 16, 68, 70, 11, 13, 97, 52, 99, 19, 71, 10, 89, 86, 18, 40, 5, 38, 9, 82, 83,
    43, 32, 94, 67, 93, 75, 59, 79, 1, 50, 73, 66, 45, 63, 58, 22, 3, 87, 4, 61, 51, 12, 74, 21, 20, 6, 35, 44, 48, 37,
    33, 15, 88, 31, 69, 27, 81, 85, 56, 7, 65, 47, 41, 29, 80, 57, 84, 36, 17, 34, 72, 2, 91, 8, 53, 30, 90, 26, 23, 54,
    76, 14, 55, 0, 64, 77, 39, 25, 92, 49, 28,
};
static const int64_t randperm_1_generic_seed2[1] = {
    0,
};
static const int64_t randint_100_generic_seed2[10] = {
    42, 67, 76, 14, 26, 35, 20, 24, 50, 13,
};
static const int64_t randint_below_generic_seed2[10] = {
    266460262, 199900602, 56755046, 250975499, 191100016, 127521870, 155299520, 147532824, 133224035, 35788923,
};
static const int64_t randint_wide_generic_seed2[10] = {
    199900595, 250975502, 127521863, 147532820, 35788921, 160953558, 93410762, 91090292, 76737383, 111190146,
};
static const int64_t randint_40_generic_seed2[10] = {
    -658003837517, 395924837646, -640896347065, -289494324204, -659510126471, 902372521174, 319800038858, -724416205452,
    -673696257177, -448176021374,
};
static const golden_row rand_generic[] = {
    {UINT64_C(0), rand_generic_seed0, 10, UINT64_C(0x51e991166800241f), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x7de70b2f7d70683b), 0x3f238090},
    {UINT64_C(42), rand_generic_seed2, 10, UINT64_C(0x9b1220103478979b), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xc01e53e1e16ed240), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x24c4fb1cf5b71e1d), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x828bf1a671d2a17b), 0x3e4629fc},
};
static const golden_row rand_1300_generic[] = {
    {UINT64_C(0), NULL, 1300, UINT64_C(0xb2683bc42de81133), 0x3edc9d48},
    {UINT64_C(1), NULL, 1300, UINT64_C(0x2df85822dcf2c560), 0x3ed0c75c},
    {UINT64_C(42), NULL, 1300, UINT64_C(0x58297d9de1f2b026), 0x3e80d0dc},
    {UINT64_C(123456789), NULL, 1300, UINT64_C(0xa13957449d598cc7), 0x3df6e8d0},
    {UINT64_C(1099511627783), NULL, 1300, UINT64_C(0x7846c95291e940b0), 0x3f72ec08},
    {UINT64_C(18446744073709551615), NULL, 1300, UINT64_C(0x66dde8f3cdc5f6f0), 0x3f4f005c},
};
static const golden_row uniform_generic[] = {
    {UINT64_C(0), uniform_generic_seed0, 10, UINT64_C(0xb7b967a461c0e325), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x248d41015020aa73), 0x3f238090},
    {UINT64_C(42), uniform_generic_seed2, 10, UINT64_C(0xc8e9689c9e6c716f), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x3e744f744122e7b5), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x46383ec703196c55), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x8e4a2c3b59038dc8), 0x3e4629fc},
};
static const golden_row uniform_700_generic[] = {
    {UINT64_C(0), NULL, 700, UINT64_C(0xb4ea0cb5273c4dc8), 0x3e882ec2},
    {UINT64_C(1), NULL, 700, UINT64_C(0x44976236a773b25f), 0x3e397620},
    {UINT64_C(42), NULL, 700, UINT64_C(0xcf8bc235534e7c94), 0x3f4d89b9},
    {UINT64_C(123456789), NULL, 700, UINT64_C(0xc006da4a90dd0c2d), 0x3f399863},
    {UINT64_C(1099511627783), NULL, 700, UINT64_C(0x6e3463cef9955f4e), 0x3f1b0626},
    {UINT64_C(18446744073709551615), NULL, 700, UINT64_C(0xddb5a2e2d5b963c8), 0x3f0b3093},
};
static const golden_row randn_3_generic[] = {
    {UINT64_C(0), randn_3_generic_seed0, 3, UINT64_C(0x7879e6af639862a8), 0x3ee94812},
    {UINT64_C(1), NULL, 3, UINT64_C(0xd8148c4a312168f9), 0x3f11cb4f},
    {UINT64_C(42), randn_3_generic_seed2, 3, UINT64_C(0x97b0c40b2b8e7ff9), 0x3f70d666},
    {UINT64_C(123456789), NULL, 3, UINT64_C(0x32b5cad4bf3ad9cf), 0x3f4aaefa},
    {UINT64_C(1099511627783), NULL, 3, UINT64_C(0x08496ab174bef5b0), 0x3ebb0ab8},
    {UINT64_C(18446744073709551615), NULL, 3, UINT64_C(0x7bcf999e03c85c1e), 0x3f17b1d9},
};
static const golden_row randn_15_generic[] = {
    {UINT64_C(0), randn_15_generic_seed0, 15, UINT64_C(0xe96e3f95cb4140b3), 0x3e3421cc},
    {UINT64_C(1), NULL, 15, UINT64_C(0xcda3b097581311b1), 0x3f547cd7},
    {UINT64_C(42), randn_15_generic_seed2, 15, UINT64_C(0x11635d3532e80831), 0x3f62d1cb},
    {UINT64_C(123456789), NULL, 15, UINT64_C(0xbbd0650296423111), 0x3e0c9c1c},
    {UINT64_C(1099511627783), NULL, 15, UINT64_C(0x95b9bf590000be1e), 0x3f206c2c},
    {UINT64_C(18446744073709551615), NULL, 15, UINT64_C(0x1c36d50ca046dc38), 0x3ed5b5ac},
};
static const golden_row randn_16_generic[] = {
    {UINT64_C(0), randn_16_generic_seed0, 16, UINT64_C(0x2c52fac346f66f9f), 0x3f329a58},
    {UINT64_C(1), NULL, 16, UINT64_C(0xa16aa2172898e174), 0x3f128d86},
    {UINT64_C(42), randn_16_generic_seed2, 16, UINT64_C(0x6ade77255e9a19c0), 0x3f62ac63},
    {UINT64_C(123456789), NULL, 16, UINT64_C(0x9c39c45f761aec73), 0x3f28ee63},
    {UINT64_C(1099511627783), NULL, 16, UINT64_C(0xd7f26309c6c47813), 0x3f386ada},
    {UINT64_C(18446744073709551615), NULL, 16, UINT64_C(0x431639123c4f98b7), 0x3f4cce1b},
};
static const golden_row randn_20_generic[] = {
    {UINT64_C(0), randn_20_generic_seed0, 20, UINT64_C(0xf03c8049aca50e1b), 0x3e551ff8},
    {UINT64_C(1), NULL, 20, UINT64_C(0x1210fa009d3b7713), 0x3f7065f7},
    {UINT64_C(42), randn_20_generic_seed2, 20, UINT64_C(0xbfd84ee9b039fa42), 0x3f13f2eb},
    {UINT64_C(123456789), NULL, 20, UINT64_C(0x77c98152b7fcb2bf), 0x3edd3694},
    {UINT64_C(1099511627783), NULL, 20, UINT64_C(0xc0242b11aecc0e9c), 0x3ec70930},
    {UINT64_C(18446744073709551615), NULL, 20, UINT64_C(0x75d56ec4cd635208), 0x3f4bf71a},
};
static const golden_row randn_100_generic[] = {
    {UINT64_C(0), randn_100_generic_seed0, 100, UINT64_C(0xd2dfa54dd989585d), 0x3ec0491e},
    {UINT64_C(1), NULL, 100, UINT64_C(0xaed55b0ae2667ee1), 0x3f5cba4a},
    {UINT64_C(42), randn_100_generic_seed2, 100, UINT64_C(0xb4f372599d7495b8), 0x3f1403f8},
    {UINT64_C(123456789), NULL, 100, UINT64_C(0xc1706416284bb9cf), 0x3d361890},
    {UINT64_C(1099511627783), NULL, 100, UINT64_C(0x0c5de1f161c24040), 0x3e6e0d30},
    {UINT64_C(18446744073709551615), NULL, 100, UINT64_C(0xf5177cd498bf91fa), 0x3ec90ba2},
};
static const golden_row randn_30011_generic[] = {
    {UINT64_C(0), NULL, 30011, UINT64_C(0xc03ce8ab1d144d8c), 0x3ad59600},
    {UINT64_C(1), NULL, 30011, UINT64_C(0x8aecbcb9b0cd5443), 0x3ee43802},
    {UINT64_C(42), NULL, 30011, UINT64_C(0x52a4f13790711cef), 0x3f759c8e},
    {UINT64_C(123456789), NULL, 30011, UINT64_C(0xc5f8a8d58739b9d4), 0x3f7f76d1},
    {UINT64_C(1099511627783), NULL, 30011, UINT64_C(0xe03d6a7237a5a264), 0x3f463168},
    {UINT64_C(18446744073709551615), NULL, 30011, UINT64_C(0xdca1c4bd03a41c00), 0x3ef32320},
};
static const golden_row normal_7_generic[] = {
    {UINT64_C(0), normal_7_generic_seed0, 7, UINT64_C(0x9ff820187807e729), 0x3f329a58},
    {UINT64_C(1), NULL, 7, UINT64_C(0x878cb3909addf7db), 0x3f128d86},
    {UINT64_C(42), normal_7_generic_seed2, 7, UINT64_C(0x6859c9491240cf20), 0x3f62ac63},
    {UINT64_C(123456789), NULL, 7, UINT64_C(0x937738718b9624f9), 0x3f28ee63},
    {UINT64_C(1099511627783), NULL, 7, UINT64_C(0xed5d88e9512f8398), 0x3f386ada},
    {UINT64_C(18446744073709551615), NULL, 7, UINT64_C(0x17845283e1d5adaa), 0x3f4cce1b},
};
static const golden_row normal_20_generic[] = {
    {UINT64_C(0), normal_20_generic_seed0, 20, UINT64_C(0x411776ee7fd627cd), 0x3e551ff8},
    {UINT64_C(1), NULL, 20, UINT64_C(0x2f3931b72ac751e5), 0x3f7065f7},
    {UINT64_C(42), normal_20_generic_seed2, 20, UINT64_C(0x01cf9233ffa012b8), 0x3f13f2eb},
    {UINT64_C(123456789), NULL, 20, UINT64_C(0x1d94bbb66c59f11e), 0x3edd3694},
    {UINT64_C(1099511627783), NULL, 20, UINT64_C(0x9960fd6abd63400e), 0x3ec70930},
    {UINT64_C(18446744073709551615), NULL, 20, UINT64_C(0x3e24b9cbb30498b4), 0x3f4bf71a},
};
static const golden_row randn_3_20_2_generic[] = {
    {UINT64_C(0), randn_3_20_2_generic_seed0, 25, UINT64_C(0x986ad84cf6aa9cc1), 0x3e8e771c},
    {UINT64_C(1), NULL, 25, UINT64_C(0xe49e87eb5d57479d), 0x3eb61402},
    {UINT64_C(42), randn_3_20_2_generic_seed2, 25, UINT64_C(0xe2602f0250ec41e6), 0x3f4100bd},
    {UINT64_C(123456789), NULL, 25, UINT64_C(0x3bef588258699629), 0x3f723a43},
    {UINT64_C(1099511627783), NULL, 25, UINT64_C(0xf6fc3bb980ac0991), 0x3f3ca304},
    {UINT64_C(18446744073709551615), NULL, 25, UINT64_C(0xb54b34e8a82e27e4), 0x3c09cf40},
};
static const golden_row randperm_10_generic[] = {
    {UINT64_C(0), randperm_10_generic_seed0, 10, UINT64_C(0x5fb755c895d353d6), 0x3f21ded3},
    {UINT64_C(1), NULL, 10, UINT64_C(0xec1661980f58e612), 0x3ee0a780},
    {UINT64_C(42), randperm_10_generic_seed2, 10, UINT64_C(0xb3b37708c70ce962), 0x3e0861e4},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xe5da0f4b194dc2ec), 0x3e9929c8},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x1bb1a70084552d3a), 0x3f59ecb9},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x57ebda8afe9dd412), 0x3f177f20},
};
static const golden_row randperm_100_generic[] = {
    {UINT64_C(0), randperm_100_generic_seed0, 100, UINT64_C(0x490c6fe9c8e12d99), 0x3e592e30},
    {UINT64_C(1), NULL, 100, UINT64_C(0xe04d693d8a861d23), 0x3eb28136},
    {UINT64_C(42), randperm_100_generic_seed2, 100, UINT64_C(0x5f14316cf3bcd153), 0x3c84bb80},
    {UINT64_C(123456789), NULL, 100, UINT64_C(0x54ac58904131f755), 0x3f1d1652},
    {UINT64_C(1099511627783), NULL, 100, UINT64_C(0xeecdc018740b7121), 0x3f63059f},
    {UINT64_C(18446744073709551615), NULL, 100, UINT64_C(0x6f0a70f8f06ec57f), 0x3f13cb08},
};
static const golden_row randperm_1_generic[] = {
    {UINT64_C(0), randperm_1_generic_seed0, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3efe1558},
    {UINT64_C(1), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f41f425},
    {UINT64_C(42), randperm_1_generic_seed2, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f61dc66},
    {UINT64_C(123456789), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3ecf7d70},
    {UINT64_C(1099511627783), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f08f0af},
    {UINT64_C(18446744073709551615), NULL, 1, UINT64_C(0xaf63bd4c8601b7df), 0x3f7e69a3},
};
static const golden_row randint_100_generic[] = {
    {UINT64_C(0), randint_100_generic_seed0, 10, UINT64_C(0xc99f34ca0b764ddd), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x6f5870861fe06962), 0x3f238090},
    {UINT64_C(42), randint_100_generic_seed2, 10, UINT64_C(0xf38087c5132455ae), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x3b72cd342d77c89e), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x7f43cb58ee3aa3ce), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x5135eb452fcbe2bc), 0x3e4629fc},
};
static const golden_row randint_below_generic[] = {
    {UINT64_C(0), randint_below_generic_seed0, 10, UINT64_C(0xc5c74f9ad6fe7fee), 0x3eb2a22a},
    {UINT64_C(1), NULL, 10, UINT64_C(0x4d12726886590908), 0x3f238090},
    {UINT64_C(42), randint_below_generic_seed2, 10, UINT64_C(0xb36228364c6931b6), 0x3f6f41d2},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0xac4f4db0ab092983), 0x3f30874f},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x9c74bbdc457e2ec4), 0x3f5add8e},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0xa8e9ae814676af8d), 0x3e4629fc},
};
static const golden_row randint_wide_generic[] = {
    {UINT64_C(0), randint_wide_generic_seed0, 10, UINT64_C(0x181fcfe13c8ecc21), 0x3f2e7de6},
    {UINT64_C(1), NULL, 10, UINT64_C(0xc53564b3d41c8b05), 0x3ea0a9fc},
    {UINT64_C(42), randint_wide_generic_seed2, 10, UINT64_C(0xbd957cb79a4dfc2f), 0x3e8a0d2a},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x4a7567678aa43572), 0x3e7e8548},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x914f70f2704a5560), 0x3f620444},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0xd440d6c84e5a1f74), 0x3d3d5370},
};
static const golden_row randint_40_generic[] = {
    {UINT64_C(0), randint_40_generic_seed0, 10, UINT64_C(0xec7bd25cdc8ecc21), 0x3f2e7de6},
    {UINT64_C(1), NULL, 10, UINT64_C(0x53f5a5e5541c8b05), 0x3ea0a9fc},
    {UINT64_C(42), randint_40_generic_seed2, 10, UINT64_C(0x41bf9f9dea4dfc2f), 0x3e8a0d2a},
    {UINT64_C(123456789), NULL, 10, UINT64_C(0x266704f5baa43572), 0x3e7e8548},
    {UINT64_C(1099511627783), NULL, 10, UINT64_C(0x6480811f604a5560), 0x3f620444},
    {UINT64_C(18446744073709551615), NULL, 10, UINT64_C(0x0d6674736e5a1f74), 0x3d3d5370},
};
static const uint64_t init_linear_weight = UINT64_C(0x8bce08febfb2afb4);
static const uint64_t init_linear_bias = UINT64_C(0xbee96c088082a3c8);
static const uint64_t init_conv_weight = UINT64_C(0x41d61e6e47fe38ac);
static const uint64_t init_conv_bias = UINT64_C(0x27231bfd61af7d5e);
static const uint64_t init_net_0_weight = UINT64_C(0xb2b67d7e5aaea1d6);
static const uint64_t init_net_0_bias = UINT64_C(0x542eac64613f11e3);
static const uint64_t init_net_4_weight = UINT64_C(0x642bb9070ecedec5);
static const uint64_t init_net_4_bias = UINT64_C(0x6f2633f625776fe8);

#endif
