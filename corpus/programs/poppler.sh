# ways: more
# needs: ghostscript poppler-utils
. "$ROOT/corpus/programs/ghostscript.sh" >/dev/null; $CHECK pdftotext a.pdf - | cksum; $CHECK pdftoppm -r 40 a.pdf p && cat p*.ppm | cksum; $CHECK pdfinfo a.pdf | grep Pages; $CHECK pdffonts a.pdf | wc -l;
