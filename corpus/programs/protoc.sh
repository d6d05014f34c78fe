# ways: more
# needs: protobuf-compiler
printf 'syntax = "proto3";\npackage shop;\nmessage Item { string name = 1; repeated Item parts = 2; map<string, int64> stock = 3; oneof kind { int32 a = 4; bytes b = 5; } }\nservice S { rpc Get(Item) returns (stream Item); }\n' >shop.proto
mkdir o && $CHECK protoc --cpp_out=o --python_out=o --java_out=o --descriptor_set_out=o/d shop.proto && find o -type f | sort | xargs cat | cksum
printf 'name: "x" parts { name: "y" } stock { key: "k" value: 7 }' | $CHECK protoc --encode=shop.Item shop.proto >m && $CHECK protoc --decode=shop.Item shop.proto <m
