-- Binary trees: a long-lived one, and many short-lived ones of every depth. The classic load of collectors.
local depth = tonumber(arg[1]) or 16

local function make(d)
  if d == 0 then return {} end
  return { make(d - 1), make(d - 1) }
end

local function count(tree)
  if not tree[1] then return 1 end
  return 1 + count(tree[1]) + count(tree[2])
end

local long = make(depth)
local sum = 0
for d = 4, depth, 4 do
  for _ = 1, 1 << (depth - d + 2) do sum = sum + count(make(d)) end
end
print(sum, count(long))
