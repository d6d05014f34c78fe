// Objects, arrays, maps, text and JSON that come and go; the last value is printed.
let state = 12345;
const random = (limit) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % limit;
};
const kept = new Map();
let length = 0, sum = 0;
for (let round = 0; round < scale; round++) {
    const orders = [];
    for (let i = 0; i < 400; i++) {
        const lines = [];
        for (let j = random(8) + 1; j > 0; j--)
            lines.push({ name: "article-" + random(900), count: random(5) + 1, price: random(1000) / 4 });
        orders.push({ id: i, customer: "customer-" + random(3000), lines });
    }
    const text = JSON.stringify(orders);
    length += text.length;
    for (const order of JSON.parse(text)) {
        const list = kept.get(order.customer) || [];
        list.push(order);
        if (list.length > 6) list.splice(0, 3);
        kept.set(order.customer, list);
        sum += order.lines.map((line) => line.count * line.price).reduce((a, b) => a + b, 0);
    }
    sum += text.split(",").filter((part) => part.includes("article-1")).length;
}
[kept.size, length, sum].join(" ");
