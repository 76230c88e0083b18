// Command calls checks contexts, the cache and hosts: calls DIRECTORY.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	vmdisk "github.com/vmdisk/vmdisk/bindings/go"
)

func check(is bool, words ...any) {
	if !is {
		fmt.Println(words...)
		os.Exit(1)
	}
}

func main() {
	ctx := context.Background()
	for range 2 {
		library, err := vmdisk.NewCached(ctx, os.Args[1])
		check(err == nil, err)
		calls(ctx, library)
		check(library.Close(ctx) == nil, "close")
		_, err = library.Lint(ctx, "<disk/>", vmdisk.Options{})
		check(errors.Is(err, vmdisk.ErrClosed), err)
	}
}

func calls(ctx context.Context, library *vmdisk.Vmdisk) {
	host, err := library.NewHost(ctx, `{"schema_version": "1.0", "limits": {"io_uring_disabled": 2}}`)
	check(err == nil, err)
	text := "<disk><driver name='qemu' type='raw' io='io_uring'/><source file='/a'/><target dev='vda'/></disk>"
	uring := func() {
		report, err := library.Lint(ctx, text, vmdisk.Options{Host: host})
		check(err == nil && strings.Contains(string(report), "io-uring-disabled"), err, string(report))
	}
	uring()
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, err = library.Lint(done, text, vmdisk.Options{})
	check(errors.Is(err, context.Canceled), err)
	// A deadline ends a call, and the next one has a new instance, with the same host.
	many := "<domain><devices>" + strings.Repeat(text, 4000) + "</devices></domain>"
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = library.Lint(short, many, vmdisk.Options{})
	check(errors.Is(err, context.DeadlineExceeded), err)
	check(time.Since(began) < 2*time.Second, time.Since(began))
	uring()
	check(host.Close(ctx) == nil, "close of a host")
	// It is indexed again where it is used.
	uring()
	var refused *vmdisk.Error
	_, err = library.NewHost(ctx, "[")
	check(errors.As(err, &refused), err)
	_, err = library.Lint(ctx, text, vmdisk.Options{Ignore: []string{"cache-unsave"}})
	check(errors.As(err, &refused) && strings.Contains(refused.Message, "cache-unsafe"), err)
}
