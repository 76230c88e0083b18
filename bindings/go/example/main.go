// Command example checks domains: example FACTS.json DOMAIN.xml…. It fails if one has a finding of severity error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	vmdisk "github.com/vmdisk/vmdisk/bindings/go"
)

type report struct {
	Findings []struct {
		Rule, Severity, Title string
		Place                 struct{ Start struct{ Line, Column int } }
	}
}

func run(ctx context.Context, factsFile string, files []string) (failed bool, err error) {
	facts, err := os.ReadFile(factsFile)
	if err != nil {
		return false, err
	}
	library, err := vmdisk.New(ctx)
	if err != nil {
		return false, err
	}
	defer library.Close(ctx)
	host, err := library.NewHost(ctx, string(facts))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		result, err := library.Lint(ctx, string(text), vmdisk.Options{Host: host, Name: file})
		if err != nil {
			return false, fmt.Errorf("%s: %w", file, err)
		}
		var found report
		if err := json.Unmarshal(result, &found); err != nil {
			return false, err
		}
		for _, it := range found.Findings {
			fmt.Printf("%s:%d: %s[%s]: %s\n", file, it.Place.Start.Line, it.Severity, it.Rule, it.Title)
			failed = failed || it.Severity == "error"
		}
	}
	return failed, nil
}

func main() {
	failed, err := run(context.Background(), os.Args[1], os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if failed || err != nil {
		os.Exit(1)
	}
}
