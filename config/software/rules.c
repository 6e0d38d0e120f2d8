#include "config/software/rules.h"

#include "base/data_dir.h"

#include <string.h>

#define TEXT(key, type, member, required)                                                          \
    { key, JSON_FIELD_STRING, offsetof(type, member), 0, 0, NULL, required }
#define OTHER(key, required)                                                                       \
    { key, JSON_FIELD_OTHER, 0, 0, 0, NULL, required }

static const JsonField RULE_FIELDS[] = {
    TEXT("id", Rule, id, true),
    TEXT("key", Rule, key, true),
    TEXT("holds", Rule, text, true),
    OTHER("says", true),
    OTHER("legal", false),
    OTHER("source", true),
    {"stops", JSON_FIELD_BOOL, offsetof(Rule, stops), 0, 0, NULL, false},
    {"firm", JSON_FIELD_BOOL, offsetof(Rule, firm), 0, 0, NULL, false},
    OTHER("breaks", true),
    OTHER("obeys", true),
};

static const JsonField TABLE_FIELDS[] = {
    OTHER("schema", true),
    TEXT("name", RuleTable, name, true),
    TEXT("software", RuleTable, software, true),
    OTHER("launch", true),
    OTHER("sources", true),
    OTHER("rules", true),
};

#define NUM(fields) (sizeof(fields) / sizeof *(fields))

// [name of a source, file, place]
static Status source_read(const JsonNode *node, const JsonNode *sources, Arena *arena, Rule *rule) {
    int num_parts;
    const char *name;
    TRY(json_expect_items(node, "parts of a source", 3, &num_parts));
    if (num_parts != 3) return json_error(node, "expected a source, a file and a place in it");
    JsonNode parts[] = {json_at(node, 0), json_at(node, 1), json_at(node, 2)};
    TRY(json_read_string(&parts[0], arena, &name));
    TRY(json_read_string(&parts[1], arena, &rule->file));
    TRY(json_read_string(&parts[2], arena, &rule->place));
    JsonNode version = json_get(sources, name);
    if (!json_is_present(&version)) return json_error(&parts[0], "%s is none of sources", name);
    return json_read_string(&version, arena, &rule->version);
}

static Status example_read(const JsonNode *rule, const char *key, const cJSON **out) {
    const JsonNode node = json_get(rule, key);
    TRY(json_expect_object(&node));
    *out = node.item;
    return status_ok();
}

static Status rule_read(const JsonNode *node, const JsonNode *sources, Arena *arena, Rule *out) {
    *out = (Rule){0};
    TRY(json_read_object(node, RULE_FIELDS, NUM(RULE_FIELDS), arena, out));
    const JsonNode holds = json_get(node, "holds"), says = json_get(node, "says");
    const JsonNode legal = json_get(node, "legal"), source = json_get(node, "source");
    TRY(rule_condition_read(&holds, arena, &out->holds));
    TRY(rule_text_read(&says, arena, &out->says));
    if (json_is_present(&legal)) TRY(rule_text_read(&legal, arena, &out->legal));
    TRY(source_read(&source, sources, arena, out));
    TRY(example_read(node, "breaks", &out->breaks));
    return example_read(node, "obeys", &out->obeys);
}

static Status names_read(const JsonNode *node, Arena *arena, const char *const **out) {
    TRY(json_expect_array(node));
    const int num = json_size(node);
    const char **names = ARENA_ARRAY(arena, num + 1, const char *);
    for (int i = 0; i < num; i++) {
        const JsonNode name = json_at(node, i);
        TRY(json_read_string(&name, arena, &names[i]));
    }
    *out = names;
    return status_ok();
}

Status rules_read(const JsonNode *root, Arena *arena, RuleTable *out) {
    int version, num_rules;
    *out = (RuleTable){.file = root->file};
    TRY(json_read_object(root, TABLE_FIELDS, NUM(TABLE_FIELDS), arena, out));
    const JsonNode schema = json_get(root, "schema"), sources = json_get(root, "sources");
    const JsonNode launch = json_get(root, "launch"), list = json_get(root, "rules");
    TRY(json_read_int(&schema, 1, 1, &version));
    TRY(json_expect_object(&sources));
    TRY(names_read(&launch, arena, &out->launch));
    TRY(json_expect_items(&list, "rules", RULES_MAX, &num_rules));
    Rule *rules = ARENA_ARRAY(arena, num_rules, Rule);
    for (int i = 0; i < num_rules; i++) {
        const JsonNode node = json_at(&list, i);
        TRY(rule_read(&node, &sources, arena, &rules[i]));
        for (int before = 0; before < i; before++)
            if (strcmp(rules[before].id, rules[i].id) == 0)
                return json_error(&node, "a rule before it has the id %s, too", rules[i].id);
    }
    out->rules = rules;
    out->num_rules = num_rules;
    return status_ok();
}

Status rules_load(const char *name, Arena *arena, const RuleTable **out) {
    JsonNode *root = ARENA_NEW(arena, JsonNode); // what messages point to
    RuleTable *table = ARENA_NEW(arena, RuleTable);
    TRY(json_load(data_path(arena, "stacks/rules", name), arena, root));
    TRY(rules_read(root, arena, table));
    *out = table;
    return status_ok();
}

void rules_list(const RuleTable *table, RuleList *out) {
    out->num_rules = table->num_rules;
    for (int i = 0; i < table->num_rules; i++) out->rules[i] = &table->rules[i];
}

const Rule *rules_narrow(const RuleList *in, const RuleValues *values, RuleSet fresh,
                         RuleList *out) {
    int num = 0;
    for (int i = 0; i < in->num_rules; i++) {
        const Rule *rule = in->rules[i];
        if (rule_sets_meet(rule->holds.reads, fresh)) {
            const RuleAnswer answer = rule_condition_holds(&rule->holds, values);
            if (answer == RULE_FALSE) return rule;
            if (answer == RULE_TRUE) continue;
        }
        out->rules[num++] = rule;
    }
    out->num_rules = num;
    return NULL;
}

// A commit is known by its first letters.
static int version_length(const char *version) {
    const char *at = strchr(version, '@');
    if (!at) return (int)strlen(version);
    const size_t length = strspn(at + 1, "0123456789abcdef");
    return (int)(at - version) + 1 + (length == 40 ? 12 : (int)strlen(at + 1));
}

const char *rule_source_text(const Rule *rule, Arena *arena) {
    return arena_printf(arena, "%.*s, %s, %s", version_length(rule->version), rule->version,
                        rule->file, rule->place);
}
