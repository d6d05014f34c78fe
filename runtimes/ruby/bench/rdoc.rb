# RDoc over a part of the standard library, without writing the files, which is the kernel's work.
require "rdoc/rdoc"

library = ARGV[1] || RbConfig::CONFIG["rubylibdir"]
files = Dir[File.join(library, "{net,optparse,rubygems,csv,uri,prism,bundler}/**/*.rb")].sort.first(Integer(ARGV[0] || 120))
rdoc = RDoc::RDoc.new
rdoc.document(["--dry-run", "--quiet", "--force-update", "--op", "/nowhere", *files])
puts rdoc.store.all_classes_and_modules.sum { |mod| mod.method_list.size }
