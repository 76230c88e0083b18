// Package vmdisk reads, checks, generates and explains the disk configuration of QEMU/libvirt guests.
//
// It runs the C interface of vmdisk, which vmdisk.h describes, in WebAssembly by wazero: without cgo, on every platform.
package vmdisk

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

//go:embed vmdisk.wasm
var program []byte

// Options of a call; the zero value is the default.
type Options struct {
	// Facts of the host that runs the guest, in JSON or YAML. Without them, rules about the host are not checked.
	Facts string `json:"-"`
	// Target has the versions to check for, as "qemu=9.2,libvirt=10.0"; without it, those of the host.
	Target string `json:"target,omitempty"`
	// Policy says who shares the host: "multi-tenant" (the default), "single-tenant" or "lab".
	Policy string `json:"policy,omitempty"`
	// Name of the text in reports.
	Name string `json:"name,omitempty"`
	// UnsafeFixes applies fixes with a trade-off, too.
	UnsafeFixes bool `json:"unsafe_fixes,omitempty"`
}

// Position in a text: lines and columns count from 1, offsets are bytes.
type Position struct{ Line, Column, Offset int }

// Error is a text that cannot be read, a wrong option, or something impossible.
type Error struct {
	Message    string
	Help       string
	Start, End *Position
}

func (e *Error) Error() string { return e.Message }

// Vmdisk is an instance of the library. Its calls wait for each other: make one for each goroutine that is busy.
type Vmdisk struct {
	mutex   sync.Mutex
	runtime wazero.Runtime
	code    wazero.CompiledModule
	module  api.Module
	hosts   map[string]uint64
}

var shared = wazero.NewCompilationCache()

// New compiles the library, once in a process, which takes a second or two.
func New(ctx context.Context) (*Vmdisk, error) {
	runtime := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCompilationCache(shared))
	code, err := runtime.CompileModule(ctx, program)
	if err != nil {
		return nil, err
	}
	v := &Vmdisk{runtime: runtime, code: code}
	return v, v.start(ctx)
}

// Close frees the memory of the library.
func (v *Vmdisk) Close(ctx context.Context) error { return v.runtime.Close(ctx) }

func (v *Vmdisk) start(ctx context.Context) (err error) {
	if v.module != nil {
		_ = v.module.Close(ctx)
	}
	v.hosts = map[string]uint64{}
	v.module, err = v.runtime.InstantiateModule(ctx, v.code, wazero.NewModuleConfig().WithName(""))
	return err
}

// Lint returns the report of `vmdisk lint --format json`, byte for byte.
func (v *Vmdisk) Lint(ctx context.Context, text string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_lint", text, o)
}

// Fix returns {"text": the fixed text, "report": the report of what remains}.
func (v *Vmdisk) Fix(ctx context.Context, text string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_fix", text, o)
}

// Decide returns {"text": the text with the options that its disks leave open, "decisions": those of `vmdisk decide`}.
func (v *Vmdisk) Decide(ctx context.Context, text string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_decide", text, o)
}

// Trace returns the I/O paths of `vmdisk trace --format json`.
func (v *Vmdisk) Trace(ctx context.Context, text string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_trace", text, o)
}

// Plan returns {"xml": …, "argv": […], "script": …, "choices": …} of a spec.
func (v *Vmdisk) Plan(ctx context.Context, spec string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_plan", spec, o)
}

// Convert returns {"text": the QEMU command line of libvirt's XML or the reverse, "losses": [what is not carried over]}.
func (v *Vmdisk) Convert(ctx context.Context, text string, o Options) (json.RawMessage, error) {
	return v.call(ctx, "vmdisk_convert", text, o)
}

var plain = regexp.MustCompile(`^[\w%+,./:=@^-]+$`)

// CommandLine returns the command line with these arguments as a text: places in a report count in it.
func CommandLine(words []string) string {
	quoted := make([]string, len(words))
	for n, word := range words {
		if quoted[n] = word; !plain.MatchString(word) {
			quoted[n] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func (v *Vmdisk) call(ctx context.Context, name, text string, o Options) (json.RawMessage, error) {
	words, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	result, err := v.run(ctx, name, text, o.Facts, string(words))
	if _, refused := err.(*Error); err != nil && !refused {
		// After a bug, the next call begins with a new instance.
		if err := v.start(ctx); err != nil {
			return nil, err
		}
	}
	return result, err
}

func (v *Vmdisk) run(ctx context.Context, name, text, facts, words string) (json.RawMessage, error) {
	host, err := v.host(ctx, facts)
	if err != nil {
		return nil, err
	}
	from, err := v.put(ctx, text)
	if err != nil {
		return nil, err
	}
	options, err := v.put(ctx, words)
	if err != nil {
		return nil, err
	}
	at, err := v.invoke(ctx, name, from, host, options)
	if err != nil {
		return nil, err
	}
	result, err := v.take(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, pointer := range []uint64{from, options} {
		if _, err := v.invoke(ctx, "vmdisk_free", pointer); err != nil {
			return nil, err
		}
	}
	return result, refusal(result)
}

// host returns the index of facts, which is made once.
func (v *Vmdisk) host(ctx context.Context, facts string) (uint64, error) {
	if facts == "" {
		return 0, nil
	}
	if host, known := v.hosts[facts]; known {
		return host, nil
	}
	text, err := v.put(ctx, facts)
	if err != nil {
		return 0, err
	}
	failure, err := v.put(ctx, "    ")
	if err != nil {
		return 0, err
	}
	host, err := v.invoke(ctx, "vmdisk_host_parse", text, failure)
	if err != nil {
		return 0, err
	}
	place, _ := v.module.Memory().Read(uint32(failure), 4)
	said := binary.LittleEndian.Uint32(place)
	// What is freed has the bytes that it was made with.
	copy(place, "    ")
	for _, pointer := range []uint64{text, failure} {
		if _, err := v.invoke(ctx, "vmdisk_free", pointer); err != nil {
			return 0, err
		}
	}
	if said != 0 {
		result, err := v.take(ctx, uint64(said))
		if err != nil {
			return 0, err
		}
		return 0, refusal(result)
	}
	v.hosts[facts] = host
	return host, nil
}

func (v *Vmdisk) invoke(ctx context.Context, name string, arguments ...uint64) (uint64, error) {
	results, err := v.module.ExportedFunction(name).Call(ctx, arguments...)
	if err != nil {
		return 0, fmt.Errorf("could not be done because of a bug in vmdisk: %w", err)
	}
	if len(results) == 0 {
		return 0, nil
	}
	return results[0], nil
}

// put copies a text into the memory of the library.
func (v *Vmdisk) put(ctx context.Context, text string) (uint64, error) {
	if strings.Contains(text, "\x00") {
		return 0, &Error{Message: "expected a text, found a zero byte"}
	}
	at, err := v.invoke(ctx, "vmdisk_alloc", uint64(len(text)))
	if err == nil {
		v.module.Memory().WriteString(uint32(at), text)
	}
	return at, err
}

// take copies a text out of the memory of the library, and frees it there.
func (v *Vmdisk) take(ctx context.Context, at uint64) (json.RawMessage, error) {
	memory := v.module.Memory()
	rest, _ := memory.Read(uint32(at), memory.Size()-uint32(at))
	text := bytes.Clone(rest[:bytes.IndexByte(rest, 0)])
	_, err := v.invoke(ctx, "vmdisk_free", at)
	return text, err
}

// refusal returns the error that a result is; nil if it is none.
func refusal(result json.RawMessage) error {
	if !bytes.HasPrefix(result, []byte(`{"error":`)) {
		return nil
	}
	var failed struct{ Error *Error }
	if err := json.Unmarshal(result, &failed); err != nil {
		return err
	}
	return failed.Error
}
