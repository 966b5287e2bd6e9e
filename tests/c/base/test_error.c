/* Status names, versions, and error objects. */
#include "check.h"

static void test_every_status_has_its_name(void) {
    static const struct {
        int status;
        const char *name;
    } names[] = {
        {TFW_OK, "TFW_OK"},
        {TFW_END, "TFW_END"},
        {TFW_NEED_INPUT, "TFW_NEED_INPUT"},
        {TFW_NEED_SPACE, "TFW_NEED_SPACE"},
        {TFW_E_ARGUMENT, "TFW_E_ARGUMENT"},
        {TFW_E_MEMORY, "TFW_E_MEMORY"},
        {TFW_E_IO, "TFW_E_IO"},
        {TFW_E_UNSUPPORTED, "TFW_E_UNSUPPORTED"},
        {TFW_E_TRUNCATED, "TFW_E_TRUNCATED"},
        {TFW_E_LENGTH_CRC, "TFW_E_LENGTH_CRC"},
        {TFW_E_DATA_CRC, "TFW_E_DATA_CRC"},
        {TFW_E_TOO_LARGE, "TFW_E_TOO_LARGE"},
        {TFW_E_INDEX, "TFW_E_INDEX"},
        {TFW_E_WIRE, "TFW_E_WIRE"},
        {TFW_E_MISSING, "TFW_E_MISSING"},
        {TFW_E_KIND, "TFW_E_KIND"},
        {TFW_E_COUNT, "TFW_E_COUNT"},
        {TFW_E_SCHEMA, "TFW_E_SCHEMA"},
        {12345, "TFW_E_UNKNOWN"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CHECK(strcmp(names[i].name, tfw_status_name(names[i].status)) == 0);
    }
}

static void test_the_library_is_the_one_of_its_header(void) {
    CHECK(strcmp(TFW_VERSION_STRING, tfw_version()) == 0);
}

static void test_a_failure_resets_every_field(void) {
    tfw_error error;
    memset(&error, 7, sizeof error);
    CHECK_EQ(TFW_E_KIND, tfwi_fail(&error, TFW_E_KIND, "why"));
    CHECK_EQ(TFW_E_KIND, error.status);
    CHECK(error.os_errno == -1 && error.record == -1 && error.offset == -1);
    CHECK(error.feature == -1 && error.list == -1 && error.row == -1);
    CHECK(error.expected == -1 && error.found == -1);
    CHECK(strcmp("why", error.text) == 0);
    CHECK_EQ(TFW_E_WIRE, tfwi_fail(NULL, TFW_E_WIRE, "nobody asks"));
}

static void test_a_long_text_is_cut(void) {
    tfw_error error;
    char text[3 * TFW_ERROR_TEXT_SIZE];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    tfwi_fail(&error, TFW_E_WIRE, text);
    CHECK_EQ(TFW_ERROR_TEXT_SIZE - 1, strlen(error.text));
}

int main(void) {
    RUN(test_every_status_has_its_name);
    RUN(test_the_library_is_the_one_of_its_header);
    RUN(test_a_failure_resets_every_field);
    RUN(test_a_long_text_is_cut);
    return check_report("error");
}
