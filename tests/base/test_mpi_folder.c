#include "base/mpi_folder.h"

#include <CUnit/CUnit.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char VARIABLE[] = "OMPI_MCA_orte_tmpdir_base";

// The environment of the tests names one (tests/CMakeLists.txt).
static char *variable_take(void) {
    const char *set = getenv(VARIABLE);
    char *copy = set ? strdup(set) : NULL;
    unsetenv(VARIABLE);
    return copy;
}

static void variable_give(char *copy) {
    if (copy) setenv(VARIABLE, copy, true);
    free(copy);
}

// A file in two folders, as mpirun leaves them where it is killed.
static void fill(const char *folder) {
    char path[MPI_FOLDER_SIZE + 40];
    snprintf(path, sizeof path, "%s/ompi.host.0", folder);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/ompi.host.0/pid.1", folder);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/ompi.host.0/pid.1/contact.txt", folder);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    CU_ASSERT(fd >= 0);
    close(fd);
}

static void two_are_two_and_go_with_all_in_them(void) {
    char *before = variable_take();
    MpiFolder first, second;
    CU_ASSERT_EQUAL(mpi_folder_open(&first).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(getenv(VARIABLE), first.path);
    unsetenv(VARIABLE);
    CU_ASSERT_EQUAL(mpi_folder_open(&second).code, STATUS_OK);
    CU_ASSERT_STRING_NOT_EQUAL(first.path, second.path);
    fill(first.path);
    fill(second.path);
    const MpiFolder were[] = {first, second};
    mpi_folder_close(&second);
    CU_ASSERT_PTR_NULL(getenv(VARIABLE));
    CU_ASSERT_EQUAL(access(were[0].path, F_OK), 0);
    mpi_folder_close(&first);
    for (int i = 0; i < 2; i++) CU_ASSERT_NOT_EQUAL(access(were[i].path, F_OK), 0);
    CU_ASSERT_STRING_EQUAL(first.path, "");
    variable_give(before);
}

static void a_users_own_stays(void) {
    char *before = variable_take();
    MpiFolder folder;
    setenv(VARIABLE, "/somewhere", true);
    CU_ASSERT_EQUAL(mpi_folder_open(&folder).code, STATUS_OK);
    CU_ASSERT_STRING_EQUAL(folder.path, "");
    mpi_folder_close(&folder);
    CU_ASSERT_STRING_EQUAL(getenv(VARIABLE), "/somewhere");
    unsetenv(VARIABLE);
    variable_give(before);
}

static void one_that_cannot_be_made_is_said(void) {
    char *before = variable_take(), *above = getenv("TMPDIR") ? strdup(getenv("TMPDIR")) : NULL;
    MpiFolder folder;
    setenv("TMPDIR", "/nowhere", true);
    const Status status = mpi_folder_open(&folder);
    CU_ASSERT_EQUAL(status.code, STATUS_MACHINE);
    CU_ASSERT_STRING_EQUAL(status.text, "/nowhere: a folder for mpirun cannot be made in it: "
                                        "No such file or directory");
    CU_ASSERT_PTR_NULL(getenv(VARIABLE));
    mpi_folder_close(&folder);
    if (above)
        setenv("TMPDIR", above, true);
    else
        unsetenv("TMPDIR");
    free(above);
    variable_give(before);
}

CU_TestInfo mpi_folder_tests[] = {
    {"two_are_two_and_go_with_all_in_them", two_are_two_and_go_with_all_in_them},
    {"a_users_own_stays", a_users_own_stays},
    {"one_that_cannot_be_made_is_said", one_that_cannot_be_made_is_said},
    CU_TEST_INFO_NULL,
};
