// A benchmark of your own for `iolens ab --loop`. go build bench.go; ./bench 100
package main

import ("bufio"; "fmt"; "os"; "strconv")

func work(file *os.File, block []byte, amount int) { // what you want to measure
	for i := 0; i < amount; i++ {
		if _, err := file.ReadAt(block, int64(512*(i%8))); err != nil { panic(err) }
	}
}

func main() {
	amount, err := strconv.Atoi(append(os.Args, "100")[1])
	file, failed := os.Open("/proc/self/exe")
	if err != nil || failed != nil { panic("usage: bench AMOUNT") }
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println("ok") {
		n, _ := strconv.Atoi(in.Text())
		for block := make([]byte, 512); n > 0; n-- { work(file, block, amount) }
	}
}
