# Ruby's core tests that allocate most, fork, or make threads and fibers: one test a file, on the
# installed ruby of the same version. Left out are cases that load an extension of the tests' own.

suite_ruby() {
    local name package
    package=ruby$(ruby -e 'print RUBY_VERSION[/\d+\.\d+/]')
    source_package "$package"
    for name in array exception fiber gc gc_compact hash io marshal objectspace process proc queue \
        rand signal sprintf string struct symbol thread thread_queue weakmap; do
        [ -e "$WORK/sources/$package/test/ruby/test_$name.rb" ] || continue
        add "test_$name" 400 "cd '$WORK/sources/$package' && RUBY_TEST_TIMEOUT_SCALE=10 RUBY_TEST_SUBPROCESS_TIMEOUT_SCALE=10 exec ruby test/runner.rb -n '!/test_fatal_in_fiber|test_seek/' test/ruby/test_$name.rb"
    done
}
