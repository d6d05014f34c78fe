# ways: more
# needs: groff
{ echo '.TH A 1'; for i in $(seq 300); do printf '.SH part %d\n.TP\n\\fBword%d\\fP\ntext of it that goes on \\(em for a while\n' "$i" "$i"; done; printf '.TS\nbox;\nl r.\na\t1\nb\t2\n.TE\n.EQ\nx sup 2 over y\n.EN\n'; } | $CHECK groff -Tutf8 -man -t -e -p | cksum;
