/* Tables with categories, gaps and units: what a sample becomes, what is learned, what is refused. */
#include <math.h>

#include "runtime/data/tables/features.h"
#include "tests/data/support.h"

static char path[256];

static void put(const char *text) {
    strcpy(path, scratch_path("t.csv"));
    write_file(path, text, strlen(text));
}

static tdm_data_spec spec_now(void) {
    return (tdm_data_spec){
        .format = TDM_DATA_CSV, .path = path, .seed = TDM_INT_NULL, .categories = {1, {"city"}}, .ignore = {1, {"id"}}};
}

static tdm_dataset *open_with(const char *text, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    put(text);
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted));
    return dataset;
}

static void check_x(const tdm_dataset *dataset, int64_t row, float a, float b, float city) {
    float x[3];
    int64_t label;
    CHECK_OK(tdm__dataset_read(dataset, row, x, &label));
    CHECK(x[0] == a && x[1] == b && x[2] == city);
}

static const char homes[] =
    "id,city,size,rooms,kind\r\n7,Rome,1,10,flat\r\n8,\"Bern, \"\"old\"\"\",3,,house\r\n9,Rome,5,20,flat\r\n";

TEST(numbers_come_before_categories) {
    tdm_data_spec spec = spec_now();
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    spec.missing = TDM_MISSING_ZERO;
    tdm_dataset *dataset = open_with(homes, &spec, &wanted);
    REQUIRE(dataset != NULL);
    CHECK_INT(dataset->x_shape.dim[0], 3);
    check_x(dataset, 0, 1, 10, 1);
    check_x(dataset, 1, 3, 0, 0);
    check_x(dataset, 2, 5, 20, 1);
    CHECK_TEXT(dataset->features->item[2].values.name[0], "Bern, \"old\"");
    tdm__dataset_close(dataset);
}

TEST(standardized_by_the_rows_trained_on) {
    tdm_data_spec spec = spec_now();
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    spec.missing = TDM_MISSING_MEAN;
    spec.standardize = true;
    tdm_dataset *dataset = open_with(homes, &spec, &wanted);
    REQUIRE(dataset != NULL);
    const float far = (float)(2.0 / sqrt(8.0 / 3.0)); /* 1, 3, 5: mean 3, variance 8/3 */
    check_x(dataset, 0, -far, -1, 1);
    check_x(dataset, 1, 0, 0, 0); /* the gap is the mean of 10 and 20 */
    check_x(dataset, 2, far, 1, 1);

    /* Another table, in another order of columns, with more of them, is read by what was learned. */
    tdm_data_wanted later = wanted;
    later.features = dataset->features;
    later.class_names = &dataset->class_names;
    tdm_dataset *eval = open_with("kind,rooms,extra,size,city\nflat,15,a,3,Rome\n", &spec, &later);
    REQUIRE(eval != NULL);
    check_x(eval, 0, 0, 0, 1);
    tdm__dataset_close(eval);
    put("kind,rooms,size\nflat,15,3\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "there is no column 'city', which the data trained on has");
    spec.without_targets = true;
    eval = open_with("rooms,size,city\n15,3,Rome\n", &spec, &later);
    REQUIRE(eval != NULL);
    check_x(eval, 0, 0, 0, 1);
    tdm__dataset_close(eval);
    tdm__dataset_close(dataset);
}

TEST(unseen_categories) {
    tdm_data_spec spec = spec_now();
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    spec.missing = TDM_MISSING_ZERO;
    tdm_dataset *dataset = open_with(homes, &spec, &wanted);
    REQUIRE(dataset != NULL);
    tdm_data_wanted later = wanted;
    later.features = dataset->features;
    later.class_names = &dataset->class_names;
    put("id,city,size,rooms,kind\n1,Rome,2,3,flat\n1,Oslo,2,3,flat\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 3, column 'city': the category 'Oslo' is not in the data trained on");
    put("id,city,size,rooms,kind\n1,,2,3,flat\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 2, column 'city': the category is missing");
    tdm__dataset_close(dataset);

    spec.unseen = TDM_UNSEEN_UNKNOWN;
    dataset = open_with(homes, &spec, &wanted);
    REQUIRE(dataset != NULL);
    check_x(dataset, 0, 1, 10, 2);
    check_x(dataset, 1, 3, 0, 1);
    later.features = dataset->features;
    later.class_names = &dataset->class_names;
    tdm_dataset *eval = open_with("id,city,size,rooms,kind\n1,Oslo,2,3,flat\n1,,2,3,flat\n", &spec, &later);
    REQUIRE(eval != NULL);
    check_x(eval, 0, 2, 3, 0);
    check_x(eval, 1, 2, 3, 0);
    REQUIRE(eval->unseen_count == 1); /* an empty cell is no category */
    CHECK(eval->unseen[0].index == 0 && eval->unseen[0].item == 2);
    CHECK_TEXT(eval->unseen[0].value, "Oslo");
    tdm__dataset_close(eval);
    spec.range = (tdm_ints){2, {1, 3}}; /* samples count, not rows of the file */
    eval = open_with("id,city,size,rooms,kind\n1,Oslo,2,3,flat\n1,Rome,2,3,flat\n1,Lima,2,3,flat\n", &spec, &later);
    REQUIRE(eval != NULL && eval->unseen_count == 1);
    CHECK_INT(eval->unseen[0].index, 1);
    CHECK_TEXT(eval->unseen[0].value, "Lima");
    tdm__dataset_close(eval);
    CHECK_INT(dataset->unseen_count, 0);
    tdm__dataset_close(dataset);
}

/* Of two columns of one name `ignore` leaves one, in every table. */
TEST(columns_of_one_name) {
    tdm_data_spec spec = spec_now();
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    spec.ignore = (tdm_texts){2, {"id", "2"}};
    const char table[] = "id,city,size,size,rooms,kind\n1,Rome,7,3,4,flat\n1,Bern,8,5,6,house\n";
    tdm_dataset *dataset = open_with(table, &spec, &wanted);
    REQUIRE(dataset != NULL);
    check_x(dataset, 0, 3, 4, 1);
    tdm_data_wanted later = wanted;
    later.features = dataset->features;
    later.class_names = &dataset->class_names;
    tdm_dataset *eval = open_with(table, &spec, &later);
    REQUIRE(eval != NULL);
    check_x(eval, 0, 3, 4, 1);
    tdm__dataset_close(eval);
    eval = open_with("rooms,size,city,kind\n4,3,Rome,flat\n", &spec, &later); /* `ignore` is not for these columns */
    REQUIRE(eval != NULL);
    check_x(eval, 0, 3, 4, 1);
    tdm__dataset_close(eval);
    put("kind,city,size,rooms,rooms\nflat,Rome,3,4,5\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 1, column 5: the name 'rooms' is that of column 4, too; rename one");
    put("kind,city,rooms,size,kind\nflat,Rome,4,3,flat\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 1, column 5: the name 'kind' is that of column 1, too");
    tdm__dataset_close(dataset);
}

TEST(only_rows_of_the_part_count) {
    tdm_data_spec spec = {
        .format = TDM_DATA_CSV, .path = path, .seed = TDM_INT_NULL, .standardize = true, .range = {2, {0, 2}}};
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    tdm_dataset *dataset = open_with("x,y\n1,0\n3,1\n1000,0\n", &spec, &wanted);
    REQUIRE(dataset != NULL);
    CHECK(dataset->features->item[0].mean == 2.0 && dataset->features->item[0].stdev == 1.0);
    tdm__dataset_close(dataset);
}

TEST(targets) {
    tdm_data_spec spec = {.format = TDM_DATA_CSV, .path = path, .seed = TDM_INT_NULL, .standardize_target = true};
    const tdm_data_wanted wanted = {.target_kind = TDM_TARGET_VALUES, .target_width = 1};
    float x, y;
    tdm_dataset *dataset = open_with("x,price\n1,100\n3,300\n", &spec, &wanted);
    REQUIRE(dataset != NULL);
    CHECK_OK(tdm__dataset_read(dataset, 1, &x, &y));
    CHECK(y == 1.0f && dataset->features->target.mean == 200.0 && dataset->features->target.stdev == 100.0);
    tdm__dataset_close(dataset);

    dataset = open_with("x,ill\n1,yes\n3,no\n4,yes\n", &spec, &wanted);
    REQUIRE(dataset != NULL);
    CHECK_OK(tdm__dataset_read(dataset, 0, &x, &y));
    CHECK(y == 1.0f);
    CHECK_OK(tdm__dataset_read(dataset, 1, &x, &y));
    CHECK(y == 0.0f);
    CHECK_TEXT(dataset->features->target.values.name[0], "no");
    tdm_data_wanted later = wanted;
    later.features = dataset->features;
    put("x,ill\n1,yes\n2,maybe\n");
    CHECK_STATUS(try_open(&spec, &later), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "line 3, column 2: expected 'no' or 'yes', which are 0 and 1, found 'maybe'");
    tdm__dataset_close(dataset);
}

TEST(features_survive_as_json) {
    tdm_data_spec spec = spec_now();
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
    spec.missing = TDM_MISSING_MEAN;
    spec.standardize = true;
    tdm_dataset *dataset = open_with(homes, &spec, &wanted);
    REQUIRE(dataset != NULL);
    tdm_text text, again;
    tdm_zone zone;
    tdm_features read;
    tdm__text_init(&text, tdm_host_default());
    tdm__text_init(&again, tdm_host_default());
    tdm__zone_init(&zone, tdm_host_default());
    tdm__features_print(dataset->features, &text);
    REQUIRE_OK(tdm__features_parse(&read, &zone, text.data));
    tdm__features_print(&read, &again);
    CHECK_TEXT(again.data, text.data);
    CHECK(read.item[0].stdev == dataset->features->item[0].stdev);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"unknown\":0,\"numbers\":[],\"categories\":[]}",
        "{\"unknown\":0,\"numbers\":[{\"mean\":0,\"std\":0}],\"categories\":[],\"target\":{}}",
        "{\"unknown\":0,\"numbers\":[],\"categories\":[{\"values\":[\"b\",\"a\"]}],\"target\":{}}",
        "{\"unknown\":0,\"numbers\":[],\"categories\":[],\"target\":{},\"more\":1}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(tdm__features_parse(&read, &zone, bad[i]), TDM_E_CHECKPOINT);
    tdm__zone_deinit(&zone);
    tdm__text_deinit(&again);
    tdm__text_deinit(&text);
    tdm__dataset_close(dataset);
}

TEST(refused) {
    static char wide[140000];
    memset(wide, ',', sizeof(wide) - 1);
    const struct {
        const char *text, *says;
        int missing;
    } bad[] = {
        {"id,city,size,y\n1,Rome,two,0\n", "line 2, column 3: expected a number, found 'two'; a column of words", 0},
        {"id,city,size,y\n1,Rome,NA,0\n", "found 'NA'; to fill gaps write `missing: mean` or `missing: zero`", 0},
        {"id,city,size,y\n1,Rome,two,0\n", "expected a number, found 'two'", TDM_MISSING_MEAN},
        {"id,city,id,y\n1,Rome,2,0\n", NULL, 0},
        {"id,city,a,a,y\n1,Rome,2,3,0\n",
         "line 1, column 4: the name 'a' is that of column 3, too; rename one, or write `ignore: [\"3\"]`", 0},
        {"id,city,\" a\",a,y\n1,Rome,2,3,0\n",
         "column 4: the name 'a' is that of column 3, too, but for blanks; rename", 0},
        {"id,city,\"a \",a b,a,y\n1,Rome,2,3,4,0\n", "column 5: the name 'a' is that of column 3, too, but for blanks",
         0},
        {"id,city,,y\n1,Rome,2,0\n", "line 1, column 3: the column has no name; write one, or `ignore: [\"2\"]`", 0},
        {"\nid,city,\" \t\",y\n1,Rome,2,0\n", "line 2, column 3: the column has no name", 0},
        {"id,city,size,\n1,Rome,2,0\n", "line 1, column 4: the column has no name", 0},
        {"id,town,a,y\n1,Rome,2,0\n", "there is no column 'city'", 0},
        {"sep=;\nid;city;size;y\n1;Rome;2;0\n", "line 1: `sep=` is for Excel alone; remove this line", 0},
        {"id,city,\"sep=\",y\n1,Rome,2,0\n", NULL, 0},
        {"id,y,city\n1,2,Rome\n", "column 'city' is the label, and cannot be in `categories`", 0},
        {"id,city\n1,Rome\n", "column 'city' is the label", 0},
        {wide, "the first row has more than 65536 columns", 0},
        {"id,city,size,y\n1,\xff,2,0\n", "line 2, column 2: the category is not UTF-8", 0},
        {"id,city,size,y\n1,Rome,,0\n1,Rome,NA,0\n",
         "line 1, column 3: all cells of this column that are trained on are gaps, so it has no mean; write "
         "`ignore: [\"size\"]`",
         TDM_MISSING_MEAN},
        {"id,city,size,y\n1,,2,0\n1,,3,0\n",
         "line 1, column 2: all cells of this column that are trained on are gaps, so it has no category; write", 0},
        {"id,city,size,y\n1,\"Rome \",2,0\n1,Romeo,2,0\n1,Rome,2,0\n1,Rome,2,0\n",
         "line 4, column 2: 'Rome' is 'Rome ' of line 2, but for blanks; write them in one way", 0},
        {"id,city,size,y\n1,Rome,2,0\n1,Romeo,2,0\n1,\" Rome\",2,0\n", "line 4, column 2: ' Rome' is 'Rome' of line 2",
         0},
        {"id,city,size,y\n1,Rome,2,flat\n1,Rome,2,house\n1,Rome,2,\"flat \"\n",
         "line 4, column 4: 'flat ' is 'flat' of line 2, but for blanks", 0},
        {"id,city,size,y\n1,\"\nRome\",2,0\n1,Rome,2,0\n", "line 4, column 2: 'Rome' is ' Rome' of line 3", 0},
        {"id,city,size,y\n1,Rome\xc2\xa0,2,0\n1,Rome,2,0\n", "line 3, column 2: 'Rome' is 'Rome\xc2\xa0' of line 2", 0},
        {"id,city,size,y\n1,Rome,2,0\n1,rome,2,0\n1,New  Rome,2,0\n1,New Rome,2,0\n", NULL, 0},
        {"id,city,size,y\n1,Rome,2,NA\n\n1,Rome,3,null\n", "line 2, column 4: the label is missing, as in every row",
         0},
        {"id,city,size,y\n1,Rome,2,\n", "line 2, column 4: the label is missing", 0},
        {"id,city,size,y\n1,Rome,,0\n1,Rome,NA,0\n", NULL, TDM_MISSING_ZERO}, /* both are 0 */
        {"id,city,size,y\n1,Rome,2,NA\n1,Rome,3,flat\n", NULL, 0},            /* a class may be called so */
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        tdm_data_spec spec = spec_now();
        const tdm_data_wanted wanted = {.ignore_index = INT64_MIN};
        spec.missing = bad[i].missing;
        put(bad[i].text);
        CHECK_STATUS(try_open(&spec, &wanted), bad[i].says == NULL ? TDM_OK : TDM_E_DATA);
        if (bad[i].says != NULL) CHECK_HAS(tdm_error_message(), bad[i].says);
    }
}

/* The table is not asked for what the weights that it goes on from know. */
TEST(known_classes_may_differ_in_blanks) {
    static const char *const names[] = {"flat", "flat "};
    const tdm_data_spec spec = spec_now();
    const tdm_classes known = {.count = 2, .name = names};
    const tdm_data_wanted wanted = {.ignore_index = INT64_MIN, .class_names = &known};
    put("id,city,size,y\n1,Rome,2,flat\n1,Rome,3,flat\n");
    CHECK_STATUS(try_open(&spec, &wanted), TDM_OK);
}

/* Layers that look something up have rows for every number. */
TEST(vocabularies) {
    tdm_data_spec spec = spec_now();
    tdm_data_index index = {.first = 2, .count = 1, .below = 1, .layer = "embedding 'city'"};
    tdm_data_wanted wanted = {.ignore_index = INT64_MIN, .index = &index, .index_count = 1};
    spec.missing = TDM_MISSING_ZERO;
    put(homes);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "column 'city' has 2 categories, and embedding 'city' has a vocabulary of 1");
    index.below = 2;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_OK);
    index.first = 1;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "number 1 of sample 0 is 10, and embedding 'city' takes whole numbers from 0 to 1");
}

TEST_MAIN(RUN(numbers_come_before_categories); RUN(standardized_by_the_rows_trained_on); RUN(unseen_categories);
          RUN(columns_of_one_name); RUN(only_rows_of_the_part_count); RUN(targets); RUN(features_survive_as_json);
          RUN(refused); RUN(known_classes_may_differ_in_blanks); RUN(vocabularies);)
