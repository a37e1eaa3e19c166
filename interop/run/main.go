//go:build unix

// Run puts the gateway between real MCP servers and real MCP clients, and compares what comes through it with what they
// say to each other without it. `interop/install` has to have been run before; `make interop` does both.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ostiary/ostiary/interop/mcpraw"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("run", flag.ContinueOnError)
	at := &place{lists: map[string][]mcpraw.Tool{}}
	fs.StringVar(&at.cache, "cache", "", "`folder` that interop/install printed")
	fs.StringVar(&at.bin, "bin", "bin/ostiary", "the built ostiary")
	fs.StringVar(&at.out, "out", "", "`folder` for configurations, data and logs (default: a temporary one, removed when all is well)")
	home := fs.String("interop", "interop", "`folder` with servers.json and clients")
	only := fs.String("only", "", "comma-separated `ids` of servers")
	parts := fs.String("parts", "servers,together,clients", "what to run")
	markdown := fs.String("markdown", "", "also write the table of servers into this `file`, as Markdown")
	if err := fs.Parse(args); err != nil {
		return err
	}
	var err error
	for _, path := range []*string{&at.cache, &at.bin, &at.out, home} {
		if *path != "" {
			if *path, err = filepath.Abs(*path); err != nil {
				return err
			}
		}
	}
	keep := at.out != ""
	if !keep {
		if at.out, err = os.MkdirTemp("", "ostiary-interop-"); err != nil {
			return err
		}
	}
	at.node = nodeVersion()
	at.chromium = chromium()
	peers, err := loadPeers(filepath.Join(*home, "servers.json"))
	if err != nil {
		return err
	}
	if *only != "" {
		peers = slices.DeleteFunc(peers, func(p *peer) bool { return !slices.Contains(strings.Split(*only, ","), p.ID) })
	}
	failed := 0
	if wants(*parts, "servers") {
		rows := checkServers(ctx, at, peers)
		if wants(*parts, "together") {
			rows = append(rows, checkTogether(ctx, at, peers))
		}
		failed += report(os.Stdout, rows)
		if *markdown != "" {
			if err := os.WriteFile(*markdown, []byte(table(rows)), 0o644); err != nil {
				return err
			}
		}
	}
	if wants(*parts, "clients") {
		failed += checkClients(ctx, at, *home, os.Stdout)
	}
	if failed > 0 {
		return fmt.Errorf("%d failed; configurations and logs are in %s", failed, at.out)
	}
	if !keep {
		return os.RemoveAll(at.out)
	}
	return nil
}

func wants(parts, part string) bool { return slices.Contains(strings.Split(parts, ","), part) }

// atOnce is how many servers are looked at at a time.
const atOnce = 3

func checkServers(ctx context.Context, at *place, peers []*peer) []row {
	rows := make([]row, len(peers))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, p := range peers {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			started := time.Now()
			rows[i] = checkServer(ctx, at, p)
			state := "ok"
			if rows[i].Err != nil {
				state = "FAILED"
			} else if rows[i].Skipped != "" {
				state = "SKIPPED: " + rows[i].Skipped
			}
			fmt.Fprintf(os.Stderr, "%-22s %s (%.1f s)\n", p.ID, state, time.Since(started).Seconds())
		})
	}
	running.Wait()
	return rows
}

// report prints the rows and what went wrong, and returns how many did.
func report(w io.Writer, rows []row) (failed int) {
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SERVER\tTRANSPORT\tREVISION\tTOOLS\tBYTES\tCALL\tNOTES")
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r.cells(), "\t"))
	}
	t.Flush()
	for _, r := range rows {
		if r.Err != nil {
			failed++
			fmt.Fprintf(w, "\nFAILED %s: %v\n", r.ID, r.Err)
		}
		if r.Skipped != "" {
			fmt.Fprintf(w, "\n*** SKIPPED %s: %s ***\n", r.ID, r.Skipped)
		}
	}
	ok := 0
	for _, r := range rows {
		if r.Err == nil && r.Skipped == "" {
			ok++
		}
	}
	fmt.Fprintf(w, "\nservers: %d passed, %d failed, %d skipped\n", ok, failed, len(rows)-ok-failed)
	return failed
}

func (r row) cells() []string {
	tools := strconv.Itoa(r.Allowed)
	if r.Listed != r.Allowed {
		tools += " of " + strconv.Itoa(r.Listed)
	}
	notes := strings.Join(r.Odd, "; ")
	switch {
	case r.Err != nil:
		notes = "FAILED"
	case r.Skipped != "":
		return []string{r.ID, r.Transport, "–", "–", "–", "skipped: " + r.Skipped, ""}
	}
	return []string{r.ID, r.Transport, r.Revision, tools, strconv.Itoa(r.Bytes), r.Call, notes}
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| server | transport | negotiated | tools | bytes | call | notes |\n|---|---|---|--:|--:|---|---|\n")
	for _, r := range rows {
		cells := r.cells()
		cells[0] = "**" + cells[0] + "**: " + r.About
		for i := range cells {
			cells[i] = strings.NewReplacer("|", "\\|", "\n", " ").Replace(cells[i])
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// nodeVersion is the major version of Node, 0 if there is none.
func nodeVersion() int {
	out, err := exec.Command("node", "--version").Output()
	if err != nil {
		return 0
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	n, _ := strconv.Atoi(major)
	return n
}

func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}
