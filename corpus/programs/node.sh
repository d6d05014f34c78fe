# ways: preload long
# needs: node:nodejs
# main: node
cat >main.js <<'JS'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { execFileSync } = require('child_process'), zlib = require('zlib'), crypto = require('crypto');
if (!isMainThread) {
    const rows = []; for (let i = 0; i < 30000; i++) rows.push({ i, s: 'row' + (i * workerData % 1009) });
    parentPort.postMessage(JSON.stringify(rows).length);
} else {
    const buffers = []; let sum = 0;
    for (let i = 0; i < 3000; i++) { const b = Buffer.alloc(1 + i * 37 % 20000, i % 256); buffers.push(b); if (i % 3) buffers[i >> 1] = null; sum += b[0]; }
    console.log(sum, crypto.createHash('sha256').update('x'.repeat(1e6)).digest('hex'));
    const packed = zlib.gzipSync(JSON.stringify([...Array(50000).keys()])); console.log(JSON.parse(zlib.gunzipSync(packed)).length);
    console.log(execFileSync('sh', ['-c', 'echo child']).toString().trim());
    const workers = [3, 5, 7].map(w => new Promise(done => new Worker(__filename, { workerData: w }).on('message', done)));
    Promise.all(workers).then(all => { console.log(all.join()); process.exitCode = 5; });
}
JS
node main.js; echo "exit $?"
node -e 'const m = new WebAssembly.Memory({initial: 100}); m.grow(100); console.log(m.buffer.byteLength); throw new TypeError("thrown")' 2>&1 | grep TypeError
node --max-old-space-size=64 -e 'let a = []; for (let i = 0; i < 1e5; i++) a.push(new Array(10).fill(i)); console.log(a.length)'
