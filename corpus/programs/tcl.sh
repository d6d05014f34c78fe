# ways: check
# needs: tcl
$CHECK tclsh <<<'set l {}; for {set i 0} {$i < 20000} {incr i} { lappend l "x$i" }; puts [string length [join [lsort $l] ,]]
    puts [regexp -inline {x(\d+)} x12]; puts [exec echo child]; puts [clock format 0 -gmt 1]; puts [dict create a [dict create b c]]'
