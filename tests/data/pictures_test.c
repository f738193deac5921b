/* Which pictures a folder or a table has, and in which order; what is refused. The files are empty: nothing decodes
 * them. */
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/pictures/picture_list.h"
#include "tests/data/support.h"

static char root[256];

/* A folder with these files; the folders on the way are made. */
static void make_tree(const char *name, const char *const *files) {
    char path[600];
    snprintf(root, sizeof(root), "%s", scratch_path(name));
    CHECK(mkdir(root, 0700) == 0);
    for (; *files != NULL; files++) {
        snprintf(path, sizeof(path), "%s/%s", root, *files);
        for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/')) != NULL;) {
            *slash = '\0';
            mkdir(path, 0700);
            *slash = '/';
        }
        if (path[strlen(path) - 1] != '/') write_file(path, "", 0);
    }
}

static void link_in(const char *target, const char *name) {
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    CHECK(symlink(target, path) == 0);
}

static void check_path(const tdm_picture_list *list, int64_t index, const char *path, const char *label) {
    REQUIRE(index < list->count);
    CHECK_TEXT(tdm__picture_path(list, index), path);
    if (label == NULL) {
        CHECK(list->label_at == NULL);
    } else {
        CHECK_TEXT(list->labels.data + list->label_at[index], label);
    }
}

/* As torchvision's ImageFolder: classes sorted, within a class by folder, then by name. */
TEST(order) {
    static const char *const files[] = {"b/2.png",     "b/10.png",      "B2/x.jpeg",   "a/z.JPG",
                                        "a/sub/1.png", "a/sub-2/0.png", "a/sub/0.png", "a/notes.txt",
                                        ".git/x.png",  "a/.x.png",      "loose.png",   NULL};
    tdm_picture_list list;
    make_tree("order", files);
    REQUIRE_OK(tdm__picture_list_open(&list, tdm_host_default(), root));
    CHECK_INT(list.count, 7);
    CHECK_INT(list.class_count, 3);
    CHECK_INT(list.others, 1);
    CHECK_TEXT(list.other, "notes.txt");
    static const char *const wanted[] = {"B2/x.jpeg",     "a/z.JPG",  "a/sub/0.png", "a/sub/1.png",
                                         "a/sub-2/0.png", "b/10.png", "b/2.png"};
    static const char *const labels[] = {"B2", "a", "a", "a", "a", "b", "b"};
    for (int i = 0; i < 7; i++) check_path(&list, i, wanted[i], labels[i]);
    tdm__picture_list_close(&list);
}

TEST(flat) {
    static const char *const files[] = {"b.png", "a.jpg", "readme", NULL};
    tdm_picture_list list;
    make_tree("flat", files);
    REQUIRE_OK(tdm__picture_list_open(&list, tdm_host_default(), root));
    CHECK_INT(list.count, 2);
    CHECK_INT(list.class_count, 0);
    check_path(&list, 0, "a.jpg", NULL);
    check_path(&list, 1, "b.png", NULL);
    tdm__picture_list_close(&list);
}

/* For predictions sub-folders are no classes. */
TEST(all_below) {
    static const char *const files[] = {"b.png", "A/1.png", "a/2.jpg", "a/deep/er/3.png", "empty/", "a/readme", NULL};
    tdm_picture_list list;
    make_tree("all", files);
    REQUIRE_OK(tdm__picture_list_open_all(&list, tdm_host_default(), root));
    CHECK_INT(list.count, 4);
    check_path(&list, 0, "b.png", NULL);
    check_path(&list, 1, "A/1.png", NULL);
    check_path(&list, 2, "a/2.jpg", NULL);
    check_path(&list, 3, "a/deep/er/3.png", NULL);
    tdm__picture_list_close(&list);
    link_in(".", "a/again");
    CHECK_STATUS(tdm__picture_list_open_all(&list, tdm_host_default(), root), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "is a link to a folder");
    tdm__picture_list_close(&list);
}

static void refuses(const char *says) {
    tdm_picture_list list;
    CHECK_STATUS(tdm__picture_list_open(&list, tdm_host_default(), root), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), says);
    tdm__picture_list_close(&list);
}

TEST(refused) {
    static const char *const none[] = {"a.txt", NULL}, *const empty[] = {"a/1.png", "b/", NULL};
    static const char *const cases[] = {"cat/1.png", "dog/1.png", "Cat/1.png", NULL};
    static const char *const bytes[] = {"a/1.png", "b\xff/1.png", NULL};
    snprintf(root, sizeof(root), "%s", scratch_path("missing"));
    refuses("cannot be opened: No such file");
    make_tree("none", none);
    refuses("has neither class folders nor pictures (.jpg, .jpeg or .png); it has 'a.txt', for example");
    make_tree("empty", empty);
    refuses("the class 'b' has no pictures");
    make_tree("cases", cases);
    refuses("differ only by case");
    make_tree("bytes", bytes);
    refuses("is not UTF-8");
    snprintf(root, sizeof(root), "%s", scratch_path("none/a.txt"));
    refuses("cannot be opened: Not a directory");
}

/* Links inside are followed. One that leads out is listed if it is a picture: reading it says what is wrong. */
TEST(links) {
    static const char *const files[] = {"a/1.png", "store/2.png", NULL};
    tdm_picture_list list;
    make_tree("links", files);
    link_in("../store/2.png", "a/2.png");
    link_in("/etc/hostname", "a/3.png");
    link_in("store", "b");
    REQUIRE_OK(tdm__picture_list_open(&list, tdm_host_default(), root));
    CHECK_INT(list.class_count, 3);
    CHECK_INT(list.count, 5);
    check_path(&list, 1, "a/2.png", "a");
    check_path(&list, 2, "a/3.png", "a");
    check_path(&list, 3, "b/2.png", "b");
    tdm__picture_list_close(&list);
    link_in(".", "a/again");
    refuses("/a/again' is a link to a folder; only a class itself may be one");
    make_tree("out", files);
    link_in("/etc", "c");
    refuses("/c' is a link that leads out of the folder");
}

static tdm_status open_table(tdm_picture_list *list, const char *text) {
    char path[300];
    snprintf(path, sizeof(path), "%s.csv", root);
    write_file(path, text, strlen(text));
    return tdm__picture_table_open(list, tdm_host_default(), path, NULL);
}

TEST(tables) {
    tdm_picture_list list;
    snprintf(root, sizeof(root), "%s", scratch_path("table"));
    REQUIRE_OK(open_table(&list, "path,label\nx/1.png,cat\n\"x/2.png\",\"a dog\"\n"));
    CHECK_INT(list.count, 2);
    check_path(&list, 0, "x/1.png", "cat");
    check_path(&list, 1, "x/2.png", "a dog");
    tdm__picture_list_close(&list);
    char text[3 * PATH_MAX], folder[300], real[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", root);
    *strrchr(folder, '/') = '\0';
    REQUIRE(realpath(folder, real) != NULL);
    snprintf(text, sizeof(text), "%s/x/1.png,cat\n%s//x/./../x/2.png,dog\n", real, real);
    REQUIRE_OK(open_table(&list, text));
    check_path(&list, 0, "x/1.png", "cat");
    check_path(&list, 1, "x/./../x/2.png", "dog");
    tdm__picture_list_close(&list);
    snprintf(text, sizeof(text), "1.png,a\n%s2/1.png,b\n", real);
    CHECK_STATUS(open_table(&list, text), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "leads out of");
    tdm__picture_list_close(&list);
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "the table has no rows"},
        {"path,label\n", "the table has no rows"},
        {"1.png,cat\n2.png,\xe9l\xe9phant\n", "line 2, column 2: the label is not UTF-8; convert the file"},
        {"1.png\n", "line 1, column 1: expected two columns, path and label"},
        {"1.png,a,b\n", "expected two columns"},
        {"1.png,\n", "line 1, column 2: expected two columns"},
        {"1.png,a\n/etc/x.png,b\n", "line 2, column 1: '/etc/x.png' leads out of '"},
        {"1.png,a\nx/../../x.png,b\n", "line 2, column 1: 'x/../../x.png' leads out of '"},
        {"1.png,a\n/,b\n", "leads out of"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(open_table(&list, bad[i].text), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), bad[i].says);
        tdm__picture_list_close(&list);
    }
}

TEST_MAIN(RUN(order); RUN(flat); RUN(all_below); RUN(refused); RUN(links); RUN(tables);)
