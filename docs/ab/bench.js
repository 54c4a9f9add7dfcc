// A benchmark of your own for `iolens ab --loop`. node bench.js 100
const fs = require('fs');
const amount = +(process.argv[2] ?? 100);
const fd = fs.openSync('/proc/self/exe'), block = Buffer.alloc(512);

function work() { // what you want to measure
  for (let i = 0; i < amount; i++) fs.readSync(fd, block, 0, 512, 512 * (i % 8));
}

console.log('ready');
require('readline').createInterface({ input: process.stdin }).on('line', n => {
  for (let i = 0; i < +n; i++) work();
  console.log('ok');
});
