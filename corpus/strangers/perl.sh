# Perl's core tests of operators, t/op, on the installed perl of the same version.

suite_perl() {
    source_package perl
    local tree=$WORK/perl folder file
    if [ ! -e "$tree/done" ]; then
        # The tests want the modules in ../lib; what is installed lies in several folders.
        rm -rf "$tree"
        mkdir -p "$tree/lib"
        cp -r "$WORK/sources/perl/"{t,regen,MANIFEST} "$tree/"
        ln -s "$(command -v perl)" "$tree/t/perl"
        for folder in $(perl -MConfig -e 'print "@Config{qw(privlibexp archlibexp)}"'); do
            cp -rsf "$folder/." "$tree/lib/"
        done
        : >"$tree/done"
    fi
    for file in "$tree"/t/op/*.t; do
        file=${file#"$tree/t/"}
        [ $file != op/goto_xs.t ] || continue # needs an extension of the tests' own
        add "$file" 120 "cd '$tree/t' && exec prove -Q $file"
    done
}
