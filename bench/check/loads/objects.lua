-- Tables, closures and strings that come and go, and a graph that stays.
local state = 12345
local function random(limit)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % limit + 1
end

local graph, words = {}, {}
for round = 1, tonumber(scale) do
    for i = 1, 2000 do
        local node = { id = i, name = "node-" .. random(5000), next = {} }
        for _ = 1, random(5) do
            node.next[#node.next + 1] = graph[random(20000)]
        end
        graph[random(20000)] = node
        words[node.name] = (words[node.name] or 0) + 1
    end
    local parts = {}
    for i = 1, 500 do
        parts[i] = string.format("%d:%s", random(1000), ("x"):rep(random(60)))
    end
    local text = table.concat(parts, ",")
    local made = {}
    for number, tail in text:gmatch("(%d+):(x*)") do
        made[#made + 1] = function() return tonumber(number) + #tail end
    end
    local sum = 0
    for _, call in ipairs(made) do sum = sum + call() end
    words[sum % 97] = (words[sum % 97] or 0) + 1
    for _, node in pairs(graph) do node.next[8] = nil end
    for i = 1, 20000, 3 do
        local node = graph[i]
        if node and #node.next > 3 then node.next = {} end
    end
end

local nodes, edges, count = 0, 0, 0
for _, node in pairs(graph) do nodes, edges = nodes + 1, edges + #node.next end
for _ in pairs(words) do count = count + 1 end
print(nodes, edges, count)
