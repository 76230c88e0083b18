// Command each prints the report of each case of a file of `vmdisk_testing::cases_file`.
package main

import (
	"context"
	"encoding/json"
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
	for at := 0; at+3 < len(parts); at += 4 {
		var options vmdisk.Options
		if err := json.Unmarshal([]byte(parts[at+3]), &options); err != nil {
			panic(err)
		}
		if facts := parts[at+2]; facts != "" {
			if options.Host, err = library.NewHost(ctx, facts); err != nil {
				panic(err)
			}
		}
		var report json.RawMessage
		if parts[at] == "lint" {
			report, err = library.Lint(ctx, parts[at+1], options)
		} else {
			var inputs []vmdisk.Input
			if err := json.Unmarshal([]byte(parts[at+1]), &inputs); err != nil {
				panic(err)
			}
			report, err = library.LintAll(ctx, inputs, options)
		}
		if err != nil {
			panic(err)
		}
		if options.Host != nil {
			if err := options.Host.Close(ctx); err != nil {
				panic(err)
			}
		}
		fmt.Printf("%s\x00", report)
	}
}
