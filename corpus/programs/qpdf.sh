# ways: more
# needs: ghostscript qpdf
. "$ROOT/corpus/programs/ghostscript.sh" >/dev/null; $CHECK qpdf --linearize --deterministic-id a.pdf b.pdf && $CHECK qpdf --check b.pdf | tail -1; $CHECK qpdf --json b.pdf | wc -l; $CHECK qpdf --encrypt u o 256 -- a.pdf c.pdf; $CHECK qpdf --password=u --show-npages c.pdf;
