/* Runs a script in Lua, and frees the whole heap at the end: lua SCRIPT SCALE */
#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"
#include <stdio.h>

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    lua_State *state = luaL_newstate();
    if (!state)
        return 1;
    luaL_openlibs(state);
    lua_pushstring(state, words[2]);
    lua_setglobal(state, "scale");
    int failed = luaL_dofile(state, words[1]);
    if (failed)
        fprintf(stderr, "%s\n", lua_tostring(state, -1));
    lua_close(state);
    return failed;
}
