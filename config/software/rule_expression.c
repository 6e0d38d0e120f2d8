#include "config/software/rule_expression.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    OP_NUMBER,
    OP_VARIABLE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
    OP_NEGATE,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
    OP_NOT,
    OP_AND,
    OP_OR,
    OP_IMPLIES,
} Operation;

// --- Values

// Three-valued: returns whether the value is known.
static bool evaluate(const RuleNode *nodes, int at, const RuleValues *values, int64_t *out) {
    const RuleNode *node = &nodes[at];
    int64_t a = 0, b = 0;
    bool know_a, know_b;
    switch ((Operation)node->operation) {
    case OP_NUMBER:
        *out = node->value;
        return true;
    case OP_VARIABLE:
        *out = values->value[node->value];
        return rule_set_has(values->known, (int)node->value);
    case OP_NOT:
        know_a = evaluate(nodes, node->left, values, &a);
        *out = !a;
        return know_a;
    case OP_NEGATE:
        know_a = evaluate(nodes, node->left, values, &a);
        *out = -a;
        return know_a;
    case OP_AND:
        know_a = evaluate(nodes, node->left, values, &a);
        if (know_a && !a) return *out = 0, true;
        know_b = evaluate(nodes, node->right, values, &b);
        if (know_b && !b) return *out = 0, true;
        *out = 1;
        return know_a && know_b;
    case OP_OR:
    case OP_IMPLIES:
        know_a = evaluate(nodes, node->left, values, &a);
        if (node->operation == OP_IMPLIES) a = !a;
        if (know_a && a) return *out = 1, true;
        know_b = evaluate(nodes, node->right, values, &b);
        if (know_b && b) return *out = 1, true;
        *out = 0;
        return know_a && know_b;
    default:
        break;
    }
    if (!evaluate(nodes, node->left, values, &a)) return false;
    if (!evaluate(nodes, node->right, values, &b)) return false;
    switch ((Operation)node->operation) {
    case OP_ADD:
        *out = a + b;
        break;
    case OP_SUBTRACT:
        *out = a - b;
        break;
    case OP_MULTIPLY:
        *out = a * b;
        break;
    case OP_DIVIDE:
        *out = b ? a / b - (a % b != 0 && (a < 0) != (b < 0)) : 0;
        break;
    case OP_REMAINDER:
        *out = b ? a % b : a;
        break;
    case OP_EQUAL:
        *out = a == b;
        break;
    case OP_UNEQUAL:
        *out = a != b;
        break;
    case OP_LESS:
        *out = a < b;
        break;
    case OP_LESS_EQUAL:
        *out = a <= b;
        break;
    case OP_GREATER:
        *out = a > b;
        break;
    default:
        *out = a >= b;
        break;
    }
    return true;
}

RuleAnswer rule_condition_holds(const RuleExpression *condition, const RuleValues *values) {
    int64_t holds = 0;
    if (!evaluate(condition->nodes, condition->num_nodes - 1, values, &holds))
        return RULE_UNDECIDED;
    return holds ? RULE_TRUE : RULE_FALSE;
}

// --- Reading

enum { MAX_NODES = 256, MAX_DEPTH = 64, MAX_NAME = 48 };

// What an expression is: a number, a condition, or a choice among names.
typedef struct {
    enum { IS_NUMBER, IS_CONDITION, IS_CHOICE, IS_QUOTED } kind;
    const char *const *names; // of a choice
    char quoted[MAX_NAME];    // a name between quotes, before its choice is known
    int node;
} Operand;

typedef struct {
    const JsonNode *at;
    const char *text, *next;
    int depth;
    RuleNode nodes[MAX_NODES];
    int num_nodes;
    RuleSet reads;
} Parser;

#define REFUSE(parser, ...) return parser_refuse(parser, __VA_ARGS__)

static Status parser_refuse(const Parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static Status parser_refuse(const Parser *p, const char *format, ...) {
    char sentence[200];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return json_error(p->at, "column %d: %s", (int)(p->next - p->text) + 1, sentence);
}

static void skip_space(Parser *p) {
    while (*p->next == ' ') p->next++;
}

// Takes a sign.
static bool take(Parser *p, const char *sign) {
    skip_space(p);
    const size_t length = strlen(sign);
    if (strncmp(p->next, sign, length) != 0) return false;
    if (isalpha((unsigned char)sign[0]) &&
        (isalnum((unsigned char)p->next[length]) || p->next[length] == '_'))
        return false;
    p->next += length;
    return true;
}

static Status node_add(Parser *p, Operation operation, int left, int right, int64_t value,
                       int *out) {
    if (p->num_nodes == MAX_NODES) REFUSE(p, "the condition has more than %d parts", MAX_NODES);
    p->nodes[p->num_nodes] = (RuleNode){(unsigned char)operation, (short)left, (short)right, value};
    *out = p->num_nodes++;
    return status_ok();
}

static Status expression_parse(Parser *p, Operand *out);

static Status name_parse(Parser *p, Operand *out) {
    char name[MAX_NAME];
    size_t length = 0;
    const char *start = p->next;
    while (isalnum((unsigned char)start[length]) || start[length] == '_') length++;
    if (length == 0) REFUSE(p, "expected a name, a number or a parenthesis");
    if (length >= sizeof name) REFUSE(p, "a name of %zu letters is none", length);
    memcpy(name, start, length);
    name[length] = '\0';
    const int variable = rule_variable_find(name);
    if (variable < 0) {
        const char *names[NUM_RULE_VARIABLES + 1] = {NULL};
        for (int i = 0; i < NUM_RULE_VARIABLES; i++) names[i] = RULE_VARIABLES[i].name;
        const char *nearest = name_nearest(name, names);
        REFUSE(p, "%s is no variable%s%s", name, nearest ? "; did you mean " : "",
               nearest ? nearest : "");
    }
    p->next += length;
    const char *const *choices = RULE_VARIABLES[variable].names;
    *out = (Operand){.kind = !choices                       ? IS_NUMBER
                             : choices == RULE_SWITCH_NAMES ? IS_CONDITION
                                                            : IS_CHOICE,
                     .names = choices};
    p->reads = rule_set_with(p->reads, (RuleVariable)variable);
    return node_add(p, OP_VARIABLE, 0, 0, variable, &out->node);
}

static Status quoted_parse(Parser *p, Operand *out) {
    const char *end = strchr(p->next, '\'');
    *out = (Operand){.kind = IS_QUOTED};
    if (!end) REFUSE(p, "a quote without its end");
    const size_t length = (size_t)(end - p->next);
    if (length >= sizeof out->quoted) REFUSE(p, "a name of %zu letters is none", length);
    memcpy(out->quoted, p->next, length);
    p->next = end + 1;
    return status_ok();
}

static Status primary_parse(Parser *p, Operand *out) {
    skip_space(p);
    if (take(p, "(")) {
        TRY(expression_parse(p, out));
        if (!take(p, ")")) REFUSE(p, "expected )");
        return status_ok();
    }
    if (take(p, "'")) return quoted_parse(p, out);
    if (take(p, "-")) {
        TRY(primary_parse(p, out));
        if (out->kind != IS_NUMBER) REFUSE(p, "- of what is no number");
        return node_add(p, OP_NEGATE, out->node, 0, 0, &out->node);
    }
    if (!isdigit((unsigned char)*p->next)) return name_parse(p, out);
    char *end;
    const long long number = strtoll(p->next, &end, 10);
    p->next = end;
    *out = (Operand){.kind = IS_NUMBER};
    return node_add(p, OP_NUMBER, 0, 0, number, &out->node);
}

typedef struct {
    const char *sign;
    Operation operation;
} Sign;

// Of one level: what is between its operands, or NULL.
static const Sign *take_one(Parser *p, const Sign *signs) {
    for (; signs->sign; signs++)
        if (take(p, signs->sign)) return signs;
    return NULL;
}

static Status numbers_join(Parser *p, const Sign *sign, Operand *left, const Operand *right) {
    if (left->kind != IS_NUMBER || right->kind != IS_NUMBER)
        REFUSE(p, "%s joins numbers", sign->sign);
    return node_add(p, sign->operation, left->node, right->node, 0, &left->node);
}

static Status product_parse(Parser *p, Operand *out) {
    static const Sign SIGNS[] = {
        {"*", OP_MULTIPLY}, {"/", OP_DIVIDE}, {"%", OP_REMAINDER}, {NULL, OP_NUMBER}};
    TRY(primary_parse(p, out));
    for (const Sign *sign; (sign = take_one(p, SIGNS)) != NULL;) {
        Operand right;
        TRY(primary_parse(p, &right));
        TRY(numbers_join(p, sign, out, &right));
    }
    return status_ok();
}

static Status sum_parse(Parser *p, Operand *out) {
    static const Sign SIGNS[] = {{"+", OP_ADD}, {"-", OP_SUBTRACT}, {NULL, OP_NUMBER}};
    TRY(product_parse(p, out));
    for (const Sign *sign; (sign = take_one(p, SIGNS)) != NULL;) {
        Operand right;
        TRY(product_parse(p, &right));
        TRY(numbers_join(p, sign, out, &right));
    }
    return status_ok();
}

// A quoted name as the number of a choice.
static Status quoted_resolve(Parser *p, const Operand *choice, Operand *quoted) {
    if (choice->kind != IS_CHOICE) REFUSE(p, "'%s' beside what is no choice", quoted->quoted);
    for (int i = 0; choice->names[i]; i++) {
        if (strcmp(choice->names[i], quoted->quoted) != 0) continue;
        quoted->kind = IS_CHOICE;
        quoted->names = choice->names;
        return node_add(p, OP_NUMBER, 0, 0, i, &quoted->node);
    }
    const char *nearest = name_nearest(quoted->quoted, choice->names);
    REFUSE(p, "'%s' is none of its choices%s%s", quoted->quoted, nearest ? "; did you mean " : "",
           nearest ? nearest : "");
}

static Status compare(Parser *p, Operation operation, Operand *left, Operand *right) {
    if (right->kind == IS_QUOTED) TRY(quoted_resolve(p, left, right));
    if (left->kind != right->kind || left->names != right->names)
        REFUSE(p, "only what is of one kind can be compared");
    if (left->kind != IS_NUMBER && operation != OP_EQUAL && operation != OP_UNEQUAL)
        REFUSE(p, "only numbers have an order");
    left->kind = IS_CONDITION;
    left->names = RULE_SWITCH_NAMES;
    return node_add(p, operation, left->node, right->node, 0, &left->node);
}

// "in {1, 2}": one comparison for each, joined by `or`.
static Status list_parse(Parser *p, Operand *out) {
    Operand all = {.node = -1};
    if (!take(p, "{")) REFUSE(p, "expected { after in");
    do {
        Operand left = *out, right;
        TRY(primary_parse(p, &right));
        TRY(compare(p, OP_EQUAL, &left, &right));
        if (all.node >= 0) TRY(node_add(p, OP_OR, all.node, left.node, 0, &left.node));
        all = left;
    } while (take(p, ","));
    if (!take(p, "}")) REFUSE(p, "expected , or }");
    *out = all;
    return status_ok();
}

static Status comparison_parse(Parser *p, Operand *out) {
    static const Sign SIGNS[] = {{"==", OP_EQUAL}, {"!=", OP_UNEQUAL},       {"<=", OP_LESS_EQUAL},
                                 {"<", OP_LESS},   {">=", OP_GREATER_EQUAL}, {">", OP_GREATER},
                                 {NULL, OP_NUMBER}};
    TRY(sum_parse(p, out));
    if (take(p, "in")) return list_parse(p, out);
    const Sign *sign = take_one(p, SIGNS);
    if (!sign) return status_ok();
    Operand right;
    TRY(sum_parse(p, &right));
    return compare(p, sign->operation, out, &right);
}

static Status not_parse(Parser *p, Operand *out) {
    if (!take(p, "not")) return comparison_parse(p, out);
    if (++p->depth > MAX_DEPTH) REFUSE(p, "more than %d levels", MAX_DEPTH);
    TRY(not_parse(p, out));
    p->depth--;
    if (out->kind != IS_CONDITION) REFUSE(p, "not of what is no condition");
    return node_add(p, OP_NOT, out->node, 0, 0, &out->node);
}

static Status conditions_join(Parser *p, const Sign *sign, Operand *left, const Operand *right) {
    if (left->kind != IS_CONDITION || right->kind != IS_CONDITION)
        REFUSE(p, "%s joins conditions", sign->sign);
    return node_add(p, sign->operation, left->node, right->node, 0, &left->node);
}

static Status and_parse(Parser *p, Operand *out) {
    static const Sign AND = {"and", OP_AND};
    TRY(not_parse(p, out));
    while (take(p, AND.sign)) {
        Operand right;
        TRY(not_parse(p, &right));
        TRY(conditions_join(p, &AND, out, &right));
    }
    return status_ok();
}

static Status or_parse(Parser *p, Operand *out) {
    static const Sign OR = {"or", OP_OR};
    TRY(and_parse(p, out));
    while (take(p, OR.sign)) {
        Operand right;
        TRY(and_parse(p, &right));
        TRY(conditions_join(p, &OR, out, &right));
    }
    return status_ok();
}

static Status expression_parse(Parser *p, Operand *out) {
    static const Sign IMPLIES = {"=>", OP_IMPLIES};
    if (++p->depth > MAX_DEPTH) REFUSE(p, "more than %d levels", MAX_DEPTH);
    TRY(or_parse(p, out));
    if (take(p, IMPLIES.sign)) {
        Operand right;
        TRY(expression_parse(p, &right));
        TRY(conditions_join(p, &IMPLIES, out, &right));
    }
    p->depth--;
    return status_ok();
}

// An expression up to `end`, of which `out` gets its own copy.
static Status whole_parse(Parser *p, char end, Arena *arena, Operand *operand,
                          RuleExpression *out) {
    TRY(expression_parse(p, operand));
    skip_space(p);
    if (*p->next != end) {
        if (end) REFUSE(p, "expected %c", end);
        REFUSE(p, "expected the end, found \"%.20s\"", p->next);
    }
    if (operand->kind == IS_QUOTED) REFUSE(p, "'%s' beside nothing", operand->quoted);
    RuleNode *nodes = ARENA_ARRAY(arena, p->num_nodes, RuleNode);
    memcpy(nodes, p->nodes, (size_t)p->num_nodes * sizeof *nodes);
    *out = (RuleExpression){nodes, p->num_nodes, p->reads};
    return status_ok();
}

Status rule_condition_read(const JsonNode *node, Arena *arena, RuleExpression *out) {
    const char *text;
    Operand operand;
    TRY(json_read_string(node, arena, &text));
    Parser parser = {.at = node, .text = text, .next = text};
    TRY(whole_parse(&parser, '\0', arena, &operand, out));
    if (operand.kind != IS_CONDITION) return json_error(node, "is no condition");
    return status_ok();
}

// --- Sentences

enum { MAX_PIECES = 24 };

Status rule_text_read(const JsonNode *node, Arena *arena, RuleText *out) {
    const char *text;
    RulePiece pieces[MAX_PIECES];
    int num_pieces = 0;
    TRY(json_read_string(node, arena, &text));
    *out = (RuleText){0};
    for (const char *at = text; *at;) {
        if (num_pieces == MAX_PIECES) return json_error(node, "has more than %d parts", MAX_PIECES);
        RulePiece *piece = &pieces[num_pieces++];
        *piece = (RulePiece){0};
        if (*at != '{') {
            const size_t length = strcspn(at, "{");
            piece->text = arena_printf(arena, "%.*s", (int)length, at);
            at += length;
            continue;
        }
        Operand operand;
        Parser parser = {.at = node, .text = text, .next = at + 1};
        TRY(whole_parse(&parser, '}', arena, &operand, &piece->value));
        piece->names = operand.kind == IS_NUMBER      ? NULL
                       : operand.kind == IS_CONDITION ? RULE_SWITCH_NAMES
                                                      : operand.names;
        out->reads = rule_set_union(out->reads, piece->value.reads);
        at = parser.next + 1;
    }
    RulePiece *kept = ARENA_ARRAY(arena, num_pieces, RulePiece);
    memcpy(kept, pieces, (size_t)num_pieces * sizeof *kept);
    out->pieces = kept;
    out->num_pieces = num_pieces;
    return status_ok();
}

const char *rule_text_print(const RuleText *text, const RuleValues *values, Arena *arena) {
    const char *printed = "";
    for (int i = 0; i < text->num_pieces; i++) {
        const RulePiece *piece = &text->pieces[i];
        int64_t value = 0;
        if (piece->text)
            printed = arena_printf(arena, "%s%s", printed, piece->text);
        else if (!evaluate(piece->value.nodes, piece->value.num_nodes - 1, values, &value))
            printed = arena_printf(arena, "%s?", printed);
        else if (piece->names)
            printed = arena_printf(arena, "%s%s", printed, piece->names[value]);
        else
            printed = arena_printf(arena, "%s%lld", printed, (long long)value);
    }
    return printed;
}
