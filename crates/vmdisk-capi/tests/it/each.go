// Command each prints the report of each case of a file of `vmdisk_testing::cases_file`.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	vmdisk "github.com/vmdisk/vmdisk/bindings/go"
)

func main() {
	ctx := context.Background()
	cases, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	library, err := vmdisk.New(ctx)
	if err != nil {
		panic(err)
	}
	parts := strings.Split(string(cases), "\x00")
	for at := 0; at+2 < len(parts); at += 3 {
		report, err := library.Lint(ctx, parts[at+1], vmdisk.Options{Name: parts[at], Facts: parts[at+2]})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s\x00", report)
	}
}
