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
	"errors"
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
	// Host runs the guest: NewHost makes it of facts. Without it, rules about the host are not checked.
	Host *Host `json:"-"`
	// Target has the versions to check for, as "qemu=9.2,libvirt=10.0"; without it, those of the host.
	Target string `json:"target,omitempty"`
	// Policy says who shares the host: "multi-tenant" (the default), "single-tenant" or "lab".
	Policy string `json:"policy,omitempty"`
	// Name of the text in reports.
	Name string `json:"name,omitempty"`
	// UnsafeFixes applies fixes with a trade-off, too.
	UnsafeFixes bool `json:"unsafe_fixes,omitempty"`
	// Config is the text of a vmdisk.toml, in whose directory the name begins. The other options take precedence.
	Config string `json:"config,omitempty"`
	// Rules has levels by the names of rules and groups: "off", "on" or a severity.
	Rules map[string]string `json:"rules,omitempty"`
	// Select has the only rules and groups to report, ExtendSelect further ones, and Ignore those that do not count.
	Select       []string `json:"select,omitempty"`
	ExtendSelect []string `json:"extend_select,omitempty"`
	Ignore       []string `json:"ignore,omitempty"`
	// MinSeverity is the least severity to report.
	MinSeverity string `json:"min_severity,omitempty"`
	// Fleet has the facts of the hosts that the guests may run on, by their names, in place of a host.
	Fleet map[string]string `json:"fleet,omitempty"`
	// Existing is the guest that is there, in libvirt's XML, for Plan.
	Existing string `json:"existing,omitempty"`
	// Brief leaves out the places that rules could not look at, which are most of a report.
	Brief bool `json:"brief,omitempty"`
}

// Input is a text with its name, for LintAll.
type Input struct {
	Name string `json:"name"`
	Text string `json:"text"`
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
	closed  bool
}

// Host is a host by its facts, which are indexed once.
type Host struct {
	library *Vmdisk
	facts   string
	// The index, and the instance of the library that has it.
	pointer uint64
	module  api.Module
}

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("the library is closed")

var shared = wazero.NewCompilationCache()

// New compiles the library, once in a process, which takes seconds of processor time: NewCached keeps the result.
func New(ctx context.Context) (*Vmdisk, error) { return start(ctx, shared) }

// NewCached is New with a directory that keeps the compiled library for the next process. Nobody else may write to it:
// its files are programs. A user's own is os.UserCacheDir.
func NewCached(ctx context.Context, directory string) (*Vmdisk, error) {
	cache, err := wazero.NewCompilationCacheWithDir(directory)
	if err != nil {
		return nil, err
	}
	return start(ctx, cache)
}

func start(ctx context.Context, cache wazero.CompilationCache) (*Vmdisk, error) {
	config := wazero.NewRuntimeConfig().WithCompilationCache(cache).WithCloseOnContextDone(true)
	runtime := wazero.NewRuntimeWithConfig(ctx, config)
	code, err := runtime.CompileModule(ctx, program)
	if err != nil {
		return nil, err
	}
	v := &Vmdisk{runtime: runtime, code: code}
	return v, v.start(ctx)
}

// Close frees the memory of the library, after the calls that run.
func (v *Vmdisk) Close(ctx context.Context) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.closed = true
	return v.runtime.Close(ctx)
}

func (v *Vmdisk) start(ctx context.Context) (err error) {
	// Not the deadline of a call, which may be over.
	ctx = context.WithoutCancel(ctx)
	if v.module != nil {
		_ = v.module.Close(ctx)
	}
	v.module, err = v.runtime.InstantiateModule(ctx, v.code, wazero.NewModuleConfig().WithName(""))
	return err
}

// NewHost indexes the facts of a host, in JSON or YAML. Close frees the index.
func (v *Vmdisk) NewHost(ctx context.Context, facts string) (*Host, error) {
	host := &Host{library: v, facts: facts}
	return host, v.locked(ctx, func() error {
		_, err := v.index(ctx, host)
		return err
	})
}

// Close frees the index of a host.
func (h *Host) Close(ctx context.Context) error {
	return h.library.locked(ctx, func() error {
		if h.module != h.library.module {
			return nil
		}
		h.module = nil
		_, err := h.library.invoke(ctx, "vmdisk_host_free", h.pointer)
		return err
	})
}

// LintAll returns the report about all guests of one host, which are compared: that of `vmdisk lint --format json` with
// all files of a directory.
func (v *Vmdisk) LintAll(ctx context.Context, inputs []Input, o Options) (json.RawMessage, error) {
	list, err := json.Marshal(inputs)
	if err != nil {
		return nil, err
	}
	return v.call(ctx, "vmdisk_lint_all", string(list), o)
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

// Plan returns {"xml": …, "argv": […], "script": …, "choices": …, "changes": […], "unchanged": […]} of a spec. The changes make
// Options.Existing as planned.
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
	var result json.RawMessage
	err = v.locked(ctx, func() (err error) {
		result, err = v.run(ctx, name, text, o.Host, string(words))
		return err
	})
	return result, err
}

// locked runs a function while no other does, unless the context is done. After a bug, and after a deadline, the next call
// begins with a new instance.
func (v *Vmdisk) locked(ctx context.Context, run func() error) error {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if v.closed {
		return ErrClosed
	}
	err := run()
	if _, refused := err.(*Error); err == nil || refused {
		return err
	}
	if err := v.start(ctx); err != nil {
		return err
	}
	if done := ctx.Err(); done != nil {
		return done
	}
	return err
}

func (v *Vmdisk) run(ctx context.Context, name, text string, on *Host, words string) (json.RawMessage, error) {
	host, err := v.index(ctx, on)
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

// index returns the index of a host, which each instance of the library makes once.
func (v *Vmdisk) index(ctx context.Context, host *Host) (uint64, error) {
	if host == nil {
		return 0, nil
	}
	if host.library != v {
		return 0, &Error{Message: "the host is one of another instance of the library"}
	}
	if host.module == v.module {
		return host.pointer, nil
	}
	text, err := v.put(ctx, host.facts)
	if err != nil {
		return 0, err
	}
	failure, err := v.put(ctx, "    ")
	if err != nil {
		return 0, err
	}
	pointer, err := v.invoke(ctx, "vmdisk_host_parse", text, failure)
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
	host.pointer, host.module = pointer, v.module
	return pointer, nil
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
