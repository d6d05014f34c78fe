# ways: more
# needs: bison flex gcc
cat >g.y <<'Y'
%{
#include <stdio.h>
int yylex(void); void yyerror(const char *s) { puts(s); }
%}
%define parse.error verbose
%token NUM
%left '+' '-'
%left '*' '/'
%%
all: | all e '\n' { printf("%d\n", $2); } | all error '\n' { yyerrok; };
e: NUM | e '+' e { $$ = $1 + $3; } | e '-' e { $$ = $1 - $3; } | e '*' e { $$ = $1 * $3; } | '(' e ')' { $$ = $2; };
%%
int main(void) { return yyparse(); }
Y
printf '%%{\n#include "g.tab.h"\n%%}\n%%option noyywrap nounput noinput\n%%%%\n[0-9]+ { extern int atoi(const char *); yylval = atoi(yytext); return NUM; }\n[ \\t] ;\n.|\\n return *yytext;\n' >l.l
$CHECK bison -d --report=all g.y && $CHECK flex l.l && gcc -g -w g.tab.c lex.yy.c -o calc &&
    printf '1+2*3\n(4-5)*6\n7 +\n8\n' | $CHECK ./calc; cksum <g.output
