# RDoc over a part of the standard library, to ri's files.
require "rdoc/rdoc"
require "tmpdir"

library = ARGV[1] || RbConfig::CONFIG["rubylibdir"]
Dir.mktmpdir do |folder|
  files = Dir[File.join(library, "{net,optparse,rubygems,csv,uri,prism,bundler}/**/*.rb")].sort.first(Integer(ARGV[0] || 120))
  RDoc::RDoc.new.document(["--ri", "--quiet", "--op", File.join(folder, "out"), *files])
  puts Dir[File.join(folder, "out/**/*.ri")].size
end
