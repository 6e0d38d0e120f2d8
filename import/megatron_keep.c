// What launch/ shall write as it was.
#include "import/megatron.h"

#include "launch/megatron_kept.h"

#include <string.h>

Status megatron_read_kept(MegatronRead *read) {
    FlagArgs *args = &read->args;
    cJSON *origin = cJSON_AddObjectToObject(args->out->scenario, "provenance");
    cJSON *imported = cJSON_AddObjectToObject(origin, "imported");
    cJSON *flags = cJSON_AddObjectToObject(imported, "megatron");
    for (const KeptFlag *kept = MEGATRON_KEPT; kept->flag; kept++) {
        const char *text = NULL;
        bool moe = strncmp(kept->flag, "--moe-", 6) == 0, there = args_has(args, kept->flag);
        bool fp8 = strcmp(kept->flag, "--fp8-param-gather") == 0;
        if ((moe && read->num_experts == 0) || (fp8 && !there)) continue;
        if (kept->legal && there) TRY(args_text(args, kept->flag, NULL, &text));
        if (strcmp(kept->flag, "--attention-backend") == 0 && !there &&
            args_has(args, "--use-flash-attn"))
            text = "flash";
        if (text)
            cJSON_AddStringToObject(flags, kept->flag, text);
        else
            cJSON_AddBoolToObject(flags, kept->flag, there);
    }
    return status_ok();
}
