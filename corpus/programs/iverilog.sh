# ways: more
# needs: iverilog
cat >t.v <<'V'
module counter(input clk, input rst, output reg [7:0] q);
  always @(posedge clk or posedge rst) if (rst) q <= 0; else q <= q + 3;
endmodule
module t; reg clk = 0, rst = 1; wire [7:0] q; integer i; reg [31:0] mem [0:255];
  counter c(clk, rst, q);
  initial begin rst = 0; #1 rst = 1; #1 rst = 0; for (i = 0; i < 500; i = i + 1) begin #1 clk = ~clk; mem[i % 256] = q * i; end
    $display("%d %h %s", q, mem[17], "done"); $finish; end
endmodule
V
$CHECK iverilog -g2012 -o t t.v && $CHECK vvp -n t
