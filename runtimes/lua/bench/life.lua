-- Life, on a board without borders: a set of living cells by name, made anew in each generation, and a history.
local generations, size = tonumber(arg[1]) or 60, 90

local seed = 42
local function random()
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
end

local function key(x, y) return x .. "," .. y end

local board = {}
for x = 1, size do
  for y = 1, size do
    if random() < 0.3 then board[key(x, y)] = { x = x, y = y } end
  end
end

local function step(cells)
  local around = {}
  for _, cell in pairs(cells) do
    for dx = -1, 1 do
      for dy = -1, 1 do
        if dx ~= 0 or dy ~= 0 then
          local x, y = cell.x + dx, cell.y + dy
          local name = key(x, y)
          local place = around[name]
          if place then place.n = place.n + 1
          else around[name] = { n = 1, x = x, y = y } end
        end
      end
    end
  end
  local next = {}
  for name, place in pairs(around) do
    if place.n == 3 or place.n == 2 and cells[name] then
      next[name] = { x = place.x, y = place.y }
    end
  end
  return next
end

local history, alive = {}, 0
for n = 1, generations do
  board = step(board)
  history[n % 16] = board
end
for _ in pairs(board) do alive = alive + 1 end
print(alive)
