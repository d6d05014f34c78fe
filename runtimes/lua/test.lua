-- Tests of the port's own behaviour, run in every way to collect, also at every chance
-- (LUA_HEAPWRIGHT=stress,verify). Lua's suite does not test these: threads that die before their
-- variables, old weak tables, strings that only finalizers lead to.

local function fill(n)  -- garbage, so that the heap collects
  local kept
  for i = 1, n or 3000 do kept = { i, tostring(i), kept and kept[1] } end
  return kept
end

-- A closure's variables are in the stack of a thread. The closure outlives the thread, and so do
-- several closures that share a variable.
local function orphans()
  local made = {}
  for i = 1, 50 do
    local co = coroutine.create(function()
      local shared, other = { i }, "text " .. i
      coroutine.yield(function() return shared[1], other end, function(v) shared = { v }; other = "new " .. v end)
    end)
    local _, get, set = coroutine.resume(co)
    made[i] = { get = get, set = set }
  end
  return made
end
local made = orphans()
collectgarbage()
fill()
for i, closures in ipairs(made) do
  local a, b = closures.get()
  assert(a == i and b == "text " .. i)
  closures.set(i * 2)
end
fill()
collectgarbage()
fill()
for i, closures in ipairs(made) do
  local a, b = closures.get()
  assert(a == i * 2 and b == "new " .. i * 2)
end

-- An old thread that waits gets stores when it runs, and its stack may have moved meanwhile.
local threads = {}
for i = 1, 40 do
  threads[i] = coroutine.wrap(function()
    local values = {}
    local function deep(n)
      local here = { n }
      if n > 0 then return deep(n - 1) + here[1] end
      values[#values + 1] = coroutine.yield(#values) or { "nothing" }
      return here[1]
    end
    while true do
      assert(deep(i) == i * (i + 1) // 2)
      for k, v in ipairs(values) do assert(v[1] == k) end
    end
  end)
  threads[i]()
end
for round = 1, 12 do
  for _, thread in ipairs(threads) do assert(thread({ round }) == round) end
  fill(500)
end

-- A variable and its thread are old. The thread sets the variable once more, and is then gone.
local last = {}
do
  local waiting = {}
  for i = 1, 50 do
    waiting[i] = coroutine.wrap(function()
      local value = { 0 }
      coroutine.yield(function() return value[1] end)
      value = { i }
      coroutine.yield()
    end)
    last[i] = waiting[i]()
  end
  collectgarbage()
  collectgarbage()
  for i = 1, 50 do waiting[i]() end
end
for round = 1, 4 do
  fill()
  for i = 1, 50 do assert(last[i]() == i) end
end

-- Old weak tables, in which young objects die: by keys, by values, by both.
local keys = setmetatable({}, { __mode = "k" })
local values = setmetatable({}, { __mode = "v" })
local both = setmetatable({}, { __mode = "kv" })
collectgarbage()
collectgarbage()
local kept = {}
for round = 1, 6 do
  for i = 1, 60 do
    local key, value = { round, i }, { i }
    keys[key], values[i], both[key] = value, value, value
    if i % 20 == 0 then kept[#kept + 1] = { key, value } end
  end
  fill(400)
end
for _, pair in ipairs(kept) do assert(keys[pair[1]] == pair[2] and both[pair[1]] == pair[2]) end
collectgarbage()
local function count(t) local n = 0; for _ in pairs(t) do n = n + 1 end; return n end
assert(count(keys) == #kept and count(both) == #kept and count(values) == 3)
kept = nil
collectgarbage()
assert(count(keys) == 0 and count(both) == 0 and count(values) == 0)

-- Chains through ephemerons, and a value that leads to its own key.
local chain, first = setmetatable({}, { __mode = "k" }), {}
local link = first
for i = 1, 100 do local n = { i }; chain[link] = n; link = n end
chain[link] = { link }
collectgarbage()
local n, at = 0, first
while chain[at] do at = chain[at]; n = n + 1; if n > 100 then break end end
assert(n == 101)
first, link, at = nil
collectgarbage()
assert(next(chain) == nil)

-- Finalizers run the last one first, whatever else collects. A string that only they lead to stays
-- the only one of its bytes.
local order = {}
local function watch(name) return setmetatable({ [("field_" .. name)] = name }, { __gc = function(o)
  order[#order + 1] = o["field_" .. name]
end }) end
for i = 1, 9 do watch("o" .. i) end
collectgarbage()
assert(table.concat(order) == "o9o8o7o6o5o4o3o2o1")

-- An object that its finalizer keeps, and that the finalizer gives a new finalizer.
local back
setmetatable({}, { __gc = function(o) back = o; setmetatable(o, { __gc = function() back = "again" end }) end })
collectgarbage()
assert(type(back) == "table")
back = nil
collectgarbage()
assert(back == "again")

-- Short strings: those that die and come again are equal as keys.
local names = {}
for i = 1, 2000 do names["k" .. i] = i end
for i = 1, 20000 do local _ = "x" .. i end
collectgarbage()
for i = 1, 2000 do assert(names["k" .. i] == i) end
for i = 1, 2000 do names["k" .. i] = nil end
collectgarbage()
for i = 1, 2000 do assert(names["k" .. i] == nil); names["k" .. i] = -i end
for k, v in pairs(names) do assert(k == "k" .. -v) end

-- Among many strings that die, the live ones are found again, wherever they lie in the table of
-- strings.
for round = 1, 600 do
  local t = {}
  for i = 1, 40 do t["r" .. round .. "n" .. i] = i end
  for i = 1, 60 do local _ = "d" .. round .. "x" .. i end
  collectgarbage()
  for i = 1, 40 do assert(t["r" .. round .. "n" .. i] == i) end
end

-- Arrays and nodes of old tables are replaced.
local old = {}
collectgarbage()
collectgarbage()
for i = 1, 3000 do old[i] = { i }; old["n" .. i] = { -i }; if i % 500 == 0 then fill(300) end end
for i = 1, 3000 do assert(old[i][1] == i and old["n" .. i][1] == -i) end

-- collectgarbage
assert(collectgarbage("isrunning"))
collectgarbage("stop")
assert(not collectgarbage("isrunning"))
local before = collectgarbage("count")
fill(20000)
assert(collectgarbage("count") > before + 1000)
collectgarbage("restart")
collectgarbage("collect")
assert(collectgarbage("count") < before + 200)
local mode = collectgarbage("incremental")
assert(mode == "generational" or mode == "incremental")
assert(collectgarbage("generational") == "incremental")
local steps = 0
collectgarbage("incremental")
repeat steps = steps + 1 until collectgarbage("step", 10)
assert(steps > 3 and collectgarbage("step", 1 << 20))
collectgarbage(mode)
print("ok")
