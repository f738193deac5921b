/* Tables as text: what is read, and what is refused with its line and column. */
#include "runtime/data/classes.h"
#include "tests/data/support.h"

static char path[256];

static void put(const char *text) {
    strcpy(path, scratch_path("t.csv"));
    write_file(path, text, strlen(text));
}

static tdm_data_spec spec_now(void) {
    return (tdm_data_spec){.format = TDM_DATA_CSV, .path = path, .seed = TDM_INT_NULL};
}

static tdm_data_wanted any_classes(void) {
    return (tdm_data_wanted){.ignore_index = INT64_MIN};
}

static tdm_dataset *open_table(const char *text, const tdm_data_spec *spec) {
    tdm_data_wanted wanted = any_classes();
    tdm_dataset *dataset = NULL;
    put(text);
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), spec, &wanted));
    return dataset;
}

static void check_row(const tdm_dataset *dataset, int64_t row, float a, float b, int64_t label) {
    float x[2];
    int64_t found;
    CHECK_OK(tdm__dataset_read(dataset, row, x, &found));
    CHECK(x[0] == a && x[1] == b);
    CHECK_INT(found, label);
}

TEST(forms) {
    static const char *const same[] = {
        "1,2,0\n-3.5,4e2,1\n",
        "a,b,label\n1,2,0\n-3.5,4e2,1\n",
        "\xef\xbb\xbf\"a\",\"b\",\"c\"\r\n1,2,0\r\n\r\n-3.5,4e2,1",
        "1;2;0\n -3.5 ; 4e2 ;1\n\n\n",
        "1\t2\t0\n-3.5\t4e2\t1\n",
        "\"1\",\"2\",\"0\"\n\"-3.5\",\"4e2\",\"1\"\n",
    };
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        const tdm_data_spec spec = spec_now();
        tdm_dataset *dataset = open_table(same[i], &spec);
        CHECK_INT(dataset->count, 2);
        CHECK_INT(dataset->classes, 2);
        CHECK_INT(dataset->class_names.count, 0);
        check_row(dataset, 0, 1.0f, 2.0f, 0);
        check_row(dataset, 1, -3.5f, 400.0f, 1);
        tdm__dataset_close(dataset);
    }
}

TEST(label_columns) {
    static const char text[] = "kind,a,b\n1,10,20\n0,30,40\n";
    static const char *const labels[] = {"kind", "0", "-3"};
    for (size_t i = 0; i < 3; i++) {
        tdm_data_spec spec = spec_now();
        spec.label = labels[i];
        tdm_dataset *dataset = open_table(text, &spec);
        check_row(dataset, 0, 10.0f, 20.0f, 1);
        check_row(dataset, 1, 30.0f, 40.0f, 0);
        tdm__dataset_close(dataset);
    }
    tdm_data_spec spec = spec_now();
    spec.header = TDM_CSV_HEADER_YES;
    tdm_dataset *dataset = open_table("1,2,3\n1,2,0\n", &spec);
    CHECK_INT(dataset->count, 1);
    tdm__dataset_close(dataset);
}

TEST(names) {
    const tdm_data_spec spec = spec_now();
    tdm_dataset *dataset = open_table("x,y,animal\n1,2,dog\n3,4,\"cat, black\"\n5,6,dog\n7,8,ape\n", &spec);
    REQUIRE(dataset->class_names.count == 3);
    CHECK_TEXT(dataset->class_names.name[0], "ape");
    CHECK_TEXT(dataset->class_names.name[1], "cat, black");
    CHECK_TEXT(dataset->class_names.name[2], "dog");
    check_row(dataset, 0, 1.0f, 2.0f, 2);
    check_row(dataset, 1, 3.0f, 4.0f, 1);
    check_row(dataset, 3, 7.0f, 8.0f, 0);

    /* The same names for data.eval, which has not all of them; a new one is refused. */
    tdm_data_wanted wanted = any_classes();
    wanted.class_names = &dataset->class_names;
    tdm_dataset *eval;
    put("x,y,animal\n1,2,dog\n");
    REQUIRE_OK(tdm__dataset_open(&eval, tdm_host_default(), &spec, &wanted));
    check_row(eval, 0, 1.0f, 2.0f, 2);
    tdm__dataset_close(eval);
    put("x,y,animal\n1,2,dog\n1,2,cow\n");
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "sample 1 has the label 'cow', which is no class of the data trained on");
    tdm__dataset_close(dataset);
}

TEST(float_targets) {
    const tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = {.target_kind = TDM_TARGET_VALUES, .target_width = 1};
    tdm_dataset *dataset;
    put("size,rooms,price\n10,2,1.25\n20,3,2.5\n");
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    float x[2], y;
    REQUIRE_OK(tdm__dataset_read(dataset, 1, x, &y));
    CHECK(x[0] == 20.0f && x[1] == 3.0f && y == 2.5f);
    tdm__dataset_close(dataset);
    wanted.target_width = 3;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "the model has 3 outputs per sample, and a table has one target");
}

/* `header: no` where there are names. */
TEST(names_that_are_no_samples) {
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = any_classes();
    spec.header = TDM_CSV_HEADER_NO;
    put("\nsize,rooms,price\n10,2,1\n");
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(),
              "line 2, column 1: expected a number, found 'size'; if the first row has the names of "
              "the columns, remove `header: no`");
    spec.label = "price";
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "there is no column 'price': `header: no` says that the columns have no names");
    spec.label = "0";
    wanted = (tdm_data_wanted){.target_kind = TDM_TARGET_VALUES, .target_width = 1};
    spec.ignore = (tdm_texts){1, {"1"}};
    put("price,rooms,city\n1,2,3\n");
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 1, column 3: expected a number, found 'city'; if the first row has the names");
    spec.categories = (tdm_texts){1, {"2"}};
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(),
              "line 2, column 1: found the number 1, but line 1 has 'price'; targets are numbers, or "
              "two names; if the first row has the names");
}

TEST(refused) {
    static char long_cell[1200];
    memset(long_cell, '1', sizeof(long_cell) - 1);
    const struct {
        const char *text, *label, *says;
    } bad[] = {
        {"", NULL, "the file is empty"},
        {"\n\n", NULL, "the file is empty"},
        {"a,b,c\n", NULL, "the table has no rows"},
        {"1\n2\n", NULL, "one column only"},
        {"1,2,0\n1,2\n", NULL, "line 2: expected 3 columns as in the first row, found fewer"},
        {"1,2,0\n\n1,2,3,4\n", NULL, "line 3: expected 3 columns as in the first row, found more"},
        {"a,b,kind\n1,2,ape\n3,4,Br\xfcllaffe\n", NULL, "line 3, column 3: the label is not UTF-8; convert the file"},
        {"1,2,0\n1,,0\n", NULL, "line 2, column 2: expected a number, found nothing"},
        {"1,2,0\n1,nan,0\n", NULL, "line 2, column 2: expected a number, found 'nan'"},
        {"1,2,0\n1,1e39,0\n", NULL, "line 2, column 2: the number 1e39 is too large for a float, which ends at 3.4e38"},
        {"1,2,0\n1,-1e999,0\n", NULL, "line 2, column 2: the number -1e999 is too large for a float"},
        {"1,2,0\n1,0x10,0\n", NULL, "found '0x10'"},
        {"1,2,0\n1,2,\n", NULL, "line 2, column 3: the label is missing"},
        {"1,2,0\n1,\"2,0\n1,2,0\n", NULL, "line 2, column 2: the quote that begins here is not closed"},
        {"1,2,0\n1,\"2\"3,0\n", NULL, "line 2, column 2: expected ',' behind the quote"},
        {"a,b,c\r1,2,0\r", NULL, "line 1, column 3: the line ends with CR alone; convert the file"},
        {"1,2,0\n\n1,2,-1\n", NULL,
         "line 3, column 3: the label must be 0 or more, found -1; write loss.ignore_index: -1"},
        {"a,b,c\n1,2,0\n", "d",
         "`label`: there is no column 'd'; write a name, 'a', 'b', 'c', or a number from 0 to 2 (-1: the last)"},
        {"1,2,3,4,5,6,7,8,0\n", "-10", "write a number from 0 to 8 (-1: the last)"},
        {"a,b,c,d,e,f,g,h,i\n", "j", "write a name, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', ..., or a number"},
        {"1,2,0\n", "kind", "the first row holds numbers, not names; write a number from 0 to 2"},
        {"1,2,0\n", "3", "there is no column '3'"},
        {long_cell, NULL, "more than 1023 bytes"},
        {"\xef\xbb\xbf\xef\xbb\xbf"
         "a,b,c\n1,2,0\n",
         NULL, "line 1, column 1: a byte order mark inside the text; remove it, as with `sed 's/\\xef\\xbb\\xbf//g'`"},
        {"a,b,c\n1,2,0\n\xef\xbb\xbf"
         "1,2,0\n",
         NULL, "line 3, column 1: a byte order mark inside the text"},
        {"a,b,c\n1,2,\"cat\xef\xbb\xbf\"\n", NULL, "line 2, column 3: a byte order mark inside the text"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tdm_data_spec spec = spec_now();
        tdm_data_wanted wanted = any_classes();
        spec.label = bad[i].label;
        put(bad[i].text);
        CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), bad[i].says);
    }
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = any_classes();
    wanted.classes = 3;
    put("1,2,0\n1,2,3\n");
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(
        tdm_error_message(),
        "line 2, column 3: the label must be 0 to 2 (the model has 3 outputs), found 3; classes are numbered from 0");
    put("1,2,0\n1,2,1\n1,2,1.5\n1,2,2\n"); /* the cell, not the number of its name */
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(),
              "line 4, column 3: the label is '2', class 3 of 4 names, and the model has 3 outputs; "
              "give it 4, or write whole numbers alone");
    write_file(path, "1,2\0,0\n", 7);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 1, column 2: a NUL byte; this is not a text");
    write_file(path, "\xff\xfe\x31\0,\0\x32\0", 8);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 1, column 1: the text is UTF-16; convert the file, as with `iconv");
}

TEST(gzipped) {
    static char text[100000];
    size_t length = 0;
    for (int i = 0; i < 5000; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%d,%d,%d\n", i, 2 * i, i % 3);
    tdm_bytes packed = gzip(text, length);
    strcpy(path, scratch_path("t.csv.gz"));
    write_file(path, packed.data, packed.count);
    const tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = any_classes();
    tdm_dataset *dataset;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_INT(dataset->count, 5000);
    check_row(dataset, 4999, 4999.0f, 9998.0f, 1);
    tdm__dataset_close(dataset);
    write_file(path, packed.data, packed.count - 1);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    free(packed.data);
}

/* A small file that fills the memory is no table. */
TEST(bomb) {
    const size_t count = (size_t)64 << 20;
    char *text = malloc(count);
    REQUIRE(text != NULL);
    memset(text, '1', count);
    tdm_bytes packed = gzip(text, count);
    strcpy(path, scratch_path("bomb.csv.gz"));
    write_file(path, packed.data, packed.count);
    const tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = any_classes();
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "more than 200 to 1 is refused");
    free(packed.data);
    free(text);
}

TEST_MAIN(RUN(forms); RUN(label_columns); RUN(names); RUN(float_targets); RUN(names_that_are_no_samples); RUN(refused);
          RUN(gzipped); RUN(bomb);)
