-- Coroutines: generators that are made and run to their end, chains of generators, and many that
-- wait.
local rounds = tonumber(arg[1]) or 250

local function numbers(n)
  return coroutine.wrap(function() for k = 1, n do coroutine.yield({ k }) end end)
end
local function filter(source, divisor)
  return coroutine.wrap(function()
    for box in source do
      if box[1] % divisor ~= 0 then coroutine.yield({ box[1] }) end
    end
  end)
end

local waiting = {}
for n = 1, 10000 do
  local co = coroutine.create(function(a)
    local seen = {}
    while true do
      seen[#seen % 8 + 1] = { a }
      a = coroutine.yield(#seen)
    end
  end)
  coroutine.resume(co, n)
  waiting[n] = co
end

local sum = 0
for round = 1, rounds do
  for _ = 1, 20 do
    local source = numbers(30)
    for divisor = 2, 5 do source = filter(source, divisor) end
    for box in source do sum = sum + box[1] end
  end
  for n = round % 10 + 1, #waiting, 10 do
    local _, length = coroutine.resume(waiting[n], round)
    sum = sum + length
  end
end
print(sum)
