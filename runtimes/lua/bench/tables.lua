-- Table churn: records in a big table that are replaced, arrays that grow and shrink, a queue,
-- fields that are added late.
local rounds = tonumber(arg[1]) or 40

local records, size = {}, 100000
local seed = 7
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n + 1
end

for n = 1, size do records[n] = { id = n, name = "record " .. n, tags = { n % 7, n % 11 } } end

local queue, head = {}, 1
local sum = 0
for round = 1, rounds do
  for _ = 1, 15000 do
    local n = random(size)
    local old = records[n]
    records[n] = { id = n, name = old.name, tags = { round, old.tags[1] }, changed = round }
    old.note = "replaced"
    queue[#queue + 1] = old
  end
  while #queue - head > 30000 do
    sum = sum + queue[head].id
    queue[head] = false
    head = head + 1
  end
  if head > 60000 then
    local rest = {}
    for n = head, #queue do rest[#rest + 1] = queue[n] end
    queue, head = rest, 1
  end
  local sorted = {}
  for n = 1, 2000 do sorted[n] = { random(1000), n } end
  table.sort(sorted, function(a, b) return a[1] < b[1] or a[1] == b[1] and a[2] < b[2] end)
end
print(sum % 1000007, #queue - head)
