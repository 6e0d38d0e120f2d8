// toml++ is C++; no exception leaves this file.
#include "import/toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// toml++ asserts what texts can break ("[ =" and its kind): that is a refusal, never an abort.
struct TomlFault {};
[[noreturn]] static void toml_fault() {
    throw TomlFault{};
}
#define TOML_ASSERT(expression) ((expression) ? void() : toml_fault())
#include <toml++/toml.h>

#include <cctype>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

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

// How deep values of a text lie, without reading it: what toml++ makes of 100,000 parts of a dotted
// key, and what walks that, is nested as deep, and each level takes room on the stack.
class Nesting {
  public:
    explicit Nesting(const char *text) : at(text) {
    }

    // The line where it is more than most; 0: nowhere.
    unsigned line_beyond(size_t most) {
        while (*at) {
            step();
            if (depth() > most) return line;
            if (keyless_header > 0) return 0; // toml++ must not see it
        }
        return 0;
    }

    // The line of a header whose bracket no key follows; 0: there is none.
    unsigned keyless_header = 0;

  private:
    const char *at;
    unsigned line = 1;
    size_t table = 0;         // parts of the last [header]
    size_t parts = 0;         // of the key that is read, or was read last
    bool joins = false;       // a dot came last: the next part is of the same key
    bool starts = true;       // of a line
    bool header = false;      // between the brackets of one
    std::vector<size_t> open; // depth at each bracket that is open

    size_t depth() const {
        return (open.empty() ? (header ? 0 : table) : open.back()) + parts;
    }

    void part_add() {
        parts = joins ? parts + 1 : 1;
        joins = false;
    }

    void line_end() {
        line++;
        if (!open.empty()) return;
        starts = true;
        header = joins = false;
        parts = 0;
    }

    // A text between one or three quotes.
    void quoted_skip() {
        const char quote = *at;
        const size_t num = at[1] == quote && at[2] == quote ? 3 : 1;
        for (at += num; *at; at++) {
            if (*at == '\n' && num == 1) return;
            if (*at == '\n') line++;
            if (*at == '\\' && quote == '"' && at[1] && at[1] != '\n') {
                at++;
                continue;
            }
            if (*at == quote && (num == 1 || (at[1] == quote && at[2] == quote))) {
                at += num;
                return;
            }
        }
    }

    void bracket_open() {
        if (starts && *at == '[') {
            header = true;
            at += at[1] == '[' ? 2 : 1;
            at += std::strspn(at, " \t");
            const bool key =
                std::isalnum(static_cast<unsigned char>(*at)) || std::strchr("-_\"']", *at);
            if (!key) keyless_header = line;
        } else {
            open.push_back(depth() + 1);
            at++;
        }
        parts = 0;
        joins = starts = false;
    }

    void bracket_close() {
        at++;
        joins = false;
        if (header) {
            table = parts;
            at += *at == ']';
            header = false;
        } else if (!open.empty()) {
            open.pop_back();
        }
        parts = 0;
    }

    void step() {
        const char c = *at;
        if (c == '\n') {
            at++;
            line_end();
        } else if (c == '#') {
            at += std::strcspn(at, "\n");
        } else if (c == '[' || c == '{') {
            bracket_open();
        } else if (c == ']' || c == '}') {
            bracket_close();
        } else if (c == '.') {
            joins = parts > 0;
            at++;
        } else if (c == '"' || c == '\'') {
            quoted_skip();
            part_add();
            starts = false;
        } else if (std::isspace(static_cast<unsigned char>(c))) {
            at++;
        } else if (c == '=' || c == ',') {
            at++;
            if (c == ',') parts = 0;
            joins = starts = false;
        } else {
            at += std::strcspn(at, " \t\r\n.=,[]{}#\"'");
            part_add();
            starts = false;
        }
    }
};

const size_t MAX_DEPTH = 256;

} // namespace

cJSON *toml_parse_text(const char *text, char *message, size_t message_size) {
    Nesting nesting(text);
    if (const unsigned line = nesting.line_beyond(MAX_DEPTH)) {
        std::snprintf(message, message_size, "line %u: values are nested deeper than %zu", line,
                      MAX_DEPTH);
        return nullptr;
    }
    if (nesting.keyless_header > 0) {
        std::snprintf(message, message_size, "line %u: expected a key behind \"[\"",
                      nesting.keyless_header);
        return nullptr;
    }
    try {
        const toml::parse_result result = toml::parse(std::string_view(text));
        if (result) return table_of(result.table());
        const auto &error = result.error();
        std::snprintf(message, message_size, "line %u, column %u: %s",
                      static_cast<unsigned>(error.source().begin.line),
                      static_cast<unsigned>(error.source().begin.column),
                      std::string(error.description()).c_str());
    } catch (const TomlFault &) {
        std::snprintf(message, message_size, "line 1: the text is no TOML");
    }
    return nullptr;
}
