// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/internal/terminal"
)

const (
	// bodyLevel is the lowest level at which client-go logs the bodies of requests and responses.
	bodyLevel = 8

	formatText = "text"
	formatJSON = "json"
)

// logFlags contains the values of the logging flags of Landscaper and of controller-runtime. The flags of
// controller-runtime take precedence.
type logFlags struct {
	verbosity         string
	format            string
	dev               bool
	cli               bool
	disableStacktrace bool
	disableCaller     bool
	disableTimestamp  bool

	zap   zap.Options
	given func(flag string) bool
}

// addTo registers the flags.
func (l *logFlags) addTo(fs *pflag.FlagSet) {
	l.given = fs.Changed
	fs.StringVarP(&l.verbosity, "verbosity", "v", "info", "log level: error, info or debug, or a number from 0 (info) to 7")
	fs.StringVarP(&l.format, "format", "f", formatJSON, `log format: json or text (default: text with --dev or --cli, otherwise json)`)
	fs.BoolVar(&l.dev, "dev", false, "log for developers: debug level, as text, with callers and stack traces")
	fs.BoolVar(&l.cli, "cli", false, "log for a terminal: as coloured text without timestamps")
	fs.BoolVar(&l.disableStacktrace, "disable-stacktrace", true, "log errors without stack traces (default: true, false with --dev)")
	fs.BoolVar(&l.disableCaller, "disable-caller", true, "log without the file and line of the caller (default: true, false with --dev)")
	fs.BoolVar(&l.disableTimestamp, "disable-timestamp", false, "log without timestamps (default: false, true with --cli)")
	for name, text := range map[string]string{"format": "", "disable-stacktrace": "", "disable-caller": "", "disable-timestamp": ""} {
		fs.Lookup(name).DefValue = text // the usage text contains the defaults
	}
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	l.zap.BindFlags(logging)
	fs.AddGoFlagSet(logging)
}

// newLogger returns the logger that the flags describe. If the level or the format is unknown, it returns an error.
func (l *logFlags) newLogger() (logr.Logger, error) { return l.newLoggerTo(os.Stderr) }

func (l *logFlags) newLoggerTo(w io.Writer) (logr.Logger, error) {
	options := l.zap
	options.DestWriter = terminal.NewWriter(w)
	if err := l.setLevel(&options); err != nil {
		return logr.Discard(), err
	}
	if err := l.setFormat(&options); err != nil {
		return logr.Discard(), err
	}
	if !l.getOrDefault("disable-stacktrace", l.disableStacktrace, !l.dev) {
		options.StacktraceLevel = zapcore.ErrorLevel
	} else if l.zap.StacktraceLevel == nil && !l.zap.Development {
		options.StacktraceLevel = uberzap.LevelEnablerFunc(func(zapcore.Level) bool { return false })
	}
	if !l.getOrDefault("disable-caller", l.disableCaller, !l.dev) {
		options.ZapOpts = append(options.ZapOpts, uberzap.AddCaller())
	}
	options.ZapOpts = append(options.ZapOpts, uberzap.WrapCore(func(core zapcore.Core) zapcore.Core { return lazyCore{Core: core} }))
	return zap.New(zap.UseFlagOptions(&options)), nil
}

// lazyCore encodes the fields of a logger only when the logger writes a message. Each reconcile creates a logger, but
// most reconciles write no message.
type lazyCore struct {
	zapcore.Core

	fields []zapcore.Field
}

// With implements zapcore.Core.
func (c lazyCore) With(fields []zapcore.Field) zapcore.Core {
	return lazyCore{Core: c.Core, fields: append(slices.Clip(c.fields), fields...)}
}

// Check implements zapcore.Core. It adds the wrapped core to the entry, so that no message reaches the method Write of
// lazyCore.
func (c lazyCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return c.Core.With(c.fields).Check(entry, checked)
}

// getOrDefault returns the value of a flag if it was set, and otherwise the value that the other flags imply.
func (l *logFlags) getOrDefault(name string, value, implied bool) bool {
	if l.given(name) {
		return value
	}
	return implied
}

func (l *logFlags) setLevel(options *zap.Options) error {
	if options.Level != nil || l.zap.Development && !l.given("verbosity") {
		return nil
	}
	level := zapcore.InfoLevel
	switch text := strings.ToLower(l.verbosity); {
	case l.dev && !l.given("verbosity"), text == "debug":
		level = zapcore.DebugLevel
	case text == "error":
		level = zapcore.ErrorLevel
	case text != "info":
		number, err := strconv.Atoi(text)
		if err != nil || number < 0 {
			return fmt.Errorf("--verbosity %q: want error, info, debug, or a number from 0 to %d", l.verbosity, bodyLevel-1)
		}
		level = zapcore.Level(-min(number, bodyLevel-1)) //nolint:gosec // 0 to 7
	}
	options.Level = uberzap.NewAtomicLevelAt(level)
	return nil
}

func (l *logFlags) setFormat(options *zap.Options) error {
	format := strings.ToLower(l.format)
	if !l.given("format") && (l.dev || l.cli) {
		format = formatText
	}
	if format != formatText && format != formatJSON {
		return fmt.Errorf("--format %q: want %s or %s", l.format, formatJSON, formatText)
	}
	if options.NewEncoder == nil && (!l.zap.Development || l.given("format")) {
		options.NewEncoder = newEncoder(format)
	}
	withoutTime := l.getOrDefault("disable-timestamp", l.disableTimestamp, l.cli)
	options.EncoderConfigOptions = append(options.EncoderConfigOptions, func(config *zapcore.EncoderConfig) {
		if withoutTime {
			config.TimeKey = ""
		}
		if l.cli && format == formatText {
			config.EncodeLevel = zapcore.CapitalColorLevelEncoder
		}
	})
	return nil
}

// newEncoder returns the constructor of the encoder for a format.
func newEncoder(format string) zap.NewEncoderFunc {
	return func(options ...zap.EncoderConfigOption) zapcore.Encoder {
		config := uberzap.NewProductionEncoderConfig()
		for _, option := range options {
			option(&config)
		}
		if format == formatText {
			return zapcore.NewConsoleEncoder(config)
		}
		return zapcore.NewJSONEncoder(config)
	}
}
