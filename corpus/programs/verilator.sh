# ways: more
# needs: verilator
printf 'module top(input clk, input [31:0] a, output reg [31:0] b);\n always @(posedge clk) b <= (a * 32%sd7919) ^ (b >> 3);\nendmodule\n' "'" >top.v
$CHECK verilator_bin --cc top.v --Mdir obj && ls obj | sort && $CHECK verilator_bin --lint-only top.v
