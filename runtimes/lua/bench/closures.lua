-- Closures: counters and compositions that come and go, over some that stay and share their variables.
local rounds = tonumber(arg[1]) or 60

local function counter(step)
  local n = 0
  return function() n = n + step; return n end, function(m) n = m end
end

local function compose(f, g) return function(x) return f(g(x)) end end
local function add(n) return function(x) return x + n end end

local stay = {}
for n = 1, 60000 do
  local get, set = counter(n)
  stay[n] = { get = get, set = set }
end

local sum = 0
for round = 1, rounds do
  for n = 1, 5000 do
    local f = add(n)
    for k = 1, 5 do f = compose(add(k), f) end
    sum = sum + f(round)
    local get, set = counter(1)
    set(n); sum = sum + get()
    if n % 50 == 0 then stay[(round * 97 + n) % 60000 + 1] = { get = get, set = set } end
  end
end
for n = 1, #stay do sum = sum + stay[n].get() end
print(sum)
