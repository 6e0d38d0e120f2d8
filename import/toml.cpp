// toml++ is C++; no exception leaves this file.
#include "import/toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdio>
#include <sstream>
#include <string>

namespace {

cJSON *tree_of(const toml::node &node);

cJSON *table_of(const toml::table &table) {
    cJSON *object = cJSON_CreateObject();
    for (const auto &[key, value] : table)
        cJSON_AddItemToObject(object, std::string(key.str()).c_str(), tree_of(value));
    return object;
}

cJSON *array_of(const toml::array &array) {
    cJSON *list = cJSON_CreateArray();
    for (const auto &value : array) cJSON_AddItemToArray(list, tree_of(value));
    return list;
}

cJSON *tree_of(const toml::node &node) {
    if (const auto *table = node.as_table()) return table_of(*table);
    if (const auto *array = node.as_array()) return array_of(*array);
    if (const auto *text = node.as_string()) return cJSON_CreateString(text->get().c_str());
    if (const auto *whole = node.as_integer())
        return cJSON_CreateNumber(static_cast<double>(whole->get()));
    if (const auto *number = node.as_floating_point()) return cJSON_CreateNumber(number->get());
    if (const auto *truth = node.as_boolean()) return cJSON_CreateBool(truth->get());
    std::ostringstream date;
    node.visit([&date](const auto &value) { date << value; });
    return cJSON_CreateString(date.str().c_str());
}

} // namespace

cJSON *toml_parse_text(const char *text, char *message, size_t message_size) {
    const toml::parse_result result = toml::parse(std::string_view(text));
    if (result) return table_of(result.table());
    const auto &error = result.error();
    std::snprintf(message, message_size, "line %u, column %u: %s",
                  static_cast<unsigned>(error.source().begin.line),
                  static_cast<unsigned>(error.source().begin.column),
                  std::string(error.description()).c_str());
    return nullptr;
}
