# ways: more
# needs: ghostscript
printf '%%!PS\n/Times-Roman findfont 20 scalefont setfont 1 1 30 { dup 20 mul 50 moveto (text ) show 20 string cvs show } for showpage 100 100 moveto 0.5 setgray 0 0 1 setrgbcolor 200 300 400 500 600 100 curveto stroke showpage\n' >a.ps
$CHECK gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=pdfwrite -sOutputFile=a.pdf a.ps && $CHECK gs -q -dNOPAUSE -dBATCH -sDEVICE=pgmraw -r50 -sOutputFile=- a.pdf | cksum
