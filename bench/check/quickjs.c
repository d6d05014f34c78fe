/* Runs a script in QuickJS and prints its last value: quickjs SCRIPT SCALE */
#include "quickjs.h"
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    FILE *file = fopen(words[1], "r");
    if (!file)
        return 1;
    static char text[1 << 16];
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);

    JSRuntime *runtime = JS_NewRuntime();
    /* A sanitizer's frames are larger, and its stack may lie elsewhere. */
    JS_SetMaxStackSize(runtime, 0);
    JSContext *context = JS_NewContext(runtime);
    JSValue global = JS_GetGlobalObject(context);
    JS_SetPropertyStr(context, global, "scale", JS_NewInt32(context, atoi(words[2])));
    JS_FreeValue(context, global);

    JSValue value = JS_Eval(context, text, length, words[1], JS_EVAL_TYPE_GLOBAL);
    int failed = JS_IsException(value);
    if (failed) {
        JS_FreeValue(context, value);
        value = JS_GetException(context);
    }
    const char *said = JS_ToCString(context, value);
    fprintf(failed ? stderr : stdout, "%s\n", said ? said : "?");
    JS_FreeCString(context, said);
    JS_FreeValue(context, value);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
    return failed;
}
