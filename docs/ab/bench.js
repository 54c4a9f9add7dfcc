// A benchmark of your own for `iolens ab --loop`. node bench.js 100
const fs = require('fs');
const amount = +(process.argv[2] ?? 100);
const fd = fs.openSync('/proc/self/exe'), block = Buffer.alloc(512), line = Buffer.alloc(64);

function work() { // what you want to measure
  for (let i = 0; i < amount; i++) fs.readSync(fd, block, 0, 512, 512 * (i % 8));
}

fs.writeSync(1, 'ready\n');
for (let n, text = ''; (n = fs.readSync(0, line)) > 0;) {
  text += line.toString('latin1', 0, n);
  if (!text.endsWith('\n')) continue; // a pipe may hand over part of a line
  for (let i = parseInt(text); i > 0; i--) work();
  fs.writeSync(1, 'ok\n');
  text = '';
}
