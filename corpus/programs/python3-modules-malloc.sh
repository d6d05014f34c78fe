# ways: leaks
# main: $PYTHON
export PYTHONMALLOC=malloc
. "$ROOT/corpus/programs/python3-modules.sh"
