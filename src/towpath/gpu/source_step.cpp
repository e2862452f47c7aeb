// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/gpu/source_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "towpath/gpu/errors.hpp"
#include "towpath/gpu/ptx_statement.hpp"
#include "towpath/gpu/source_text.hpp"

namespace towpath::gpu {

namespace {

constexpr std::string_view kConstant = "__grid_constant__";
constexpr const char* kBody = "towpath_body_";

class Rewriter {
 public:
  Rewriter(std::string_view text, const std::vector<std::string>& kernels, bool keeps_main)
      : text_(text), kernels_(kernels), keeps_main_(keeps_main) {}

  std::string result() {
    out_.reserve(text_.size());
    while (at_ < text_.size()) step();
    for (const std::string& kernel : kernels_) register_kernel(kernel, "");
    out_ += "\n" + registrations_;
    return std::move(out_);
  }

 private:
  void step() {
    const std::size_t behind = skip_literal(text_, at_);
    if (behind > at_) {
      if (text_[at_] == '#') note_line_marker(text_.substr(at_, behind - at_));
      copy_to(behind);
      return;
    }
    if (is_word(text_[at_])) {
      word();
      return;
    }
    const char c = text_[at_];
    if (c == '<' && text_.substr(at_, 3) == "<<<") {
      launch();
      return;
    }
    if (c == '{') {
      scopes_.push_back({namespace_, is_namespace_});
      namespace_.clear();
      is_namespace_ = false;
    }
    if (c == '}' && !scopes_.empty()) scopes_.pop_back();
    // Only the end of main() returns zero.
    if (c == '}' && at_ + 1 == main_end_) out_ += " return 0; ";
    if (c == ';') {
      namespace_.clear();
      is_namespace_ = false;
    }
    out_ += c;
    ++at_;
  }

  void copy_to(std::size_t end) {
    out_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  // # 12 "file.cu"
  void note_line_marker(std::string_view line) {
    const std::size_t quote = line.find('"');
    if (quote == std::string_view::npos) return;
    marker_line_ = std::atoi(line.data() + 2);
    marker_end_ = std::min(at_ + line.size() + 1, text_.size());
    file_ = line.substr(quote + 1, line.find('"', quote + 1) - quote - 1);
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    if (word == "__shared__") return shared(end);
    if (word == "__global__") return global(end);
    if (word == kConstant) return replace(end, "");
    if (word == "asm" || word == "__asm__" || word == "__asm") return assembly(end);
    if (word == "__noinline__") return no_inline(end);
    name(word, end);
  }
  void name(std::string_view word, std::size_t end) {
    if (word == "namespace") note_namespace(end);
    if (is_member_template(end)) out_ += "template ";
    if (file_shared_.contains(word) && !is_member()) return replace(end, accessor_of(word));
    if (word == "main" && is_main(end)) return replace(end, main_name(end));
    if (kernel_templates_.contains(word) && instance_end(end) > end) return instance(end);
    copy_to(end);
  }

  void replace(std::size_t end, const std::string& text) { out_ += text, at_ = end; }
  bool is_member() const { return out_.ends_with('.') || out_.ends_with("->"); }

  // The position after the arguments of a kernel template, unless a launch follows.
  std::size_t instance_end(std::size_t begin) const {
    if (begin >= text_.size() || text_[begin] != '<' || text_.substr(begin, 3) == "<<<")
      return begin;
    int depth = 0;
    std::size_t i = begin;
    do {
      if (text_[i] == '(') i = skip_brackets(text_, i) - 1;
      if (text_[i] == '<') ++depth;
      if (text_[i] == '>') --depth;
      ++i;
    } while (i < text_.size() && depth > 0 && text_[i] != ';');
    if (depth > 0 || text_.substr(skip_space(text_, i), 3) == "<<<") return begin;
    return i;
  }
  // An instance whose address the program takes is registered there.
  void instance(std::size_t end) {
    std::size_t begin = out_.size();
    while (begin > 0 && (is_word(out_[begin - 1]) || out_[begin - 1] == ':')) --begin;
    const std::string scope = out_.substr(begin);
    out_.resize(begin > 0 && out_[begin - 1] == '&' ? begin - 1 : begin);
    const std::string_view name = text_.substr(at_, instance_end(end) - at_);
    replace(at_ + name.size(), fmt::format("::towpath_gpu::registered(&{}{})", scope, name));
  }

  // True for `name` in `object.name<1, 2>(`. CUDA's compiler needs no word `template` there.
  bool is_member_template(std::size_t end) const {
    if (!is_member()) return false;
    if (end >= text_.size() || text_[end] != '<') return false;
    std::size_t i = end + 1;
    while (i < text_.size() &&
           (is_word(text_[i]) || is_space(text_[i]) || text_[i] == ',' || text_[i] == ':')) {
      ++i;
    }
    return i > end + 1 && text_.substr(i, 2) == ">(";
  }

  void no_inline(std::size_t end) {
    // The C++ library spells it as an attribute.
    const bool is_attribute = out_.ends_with("((");
    out_ += is_attribute ? "__noinline__" : "__attribute__((noinline))";
    at_ = end;
  }

  void note_namespace(std::size_t end) {
    const std::size_t begin = skip_space(text_, end);
    std::size_t name_end = begin;
    while (name_end < text_.size() && (is_word(text_[name_end]) || text_[name_end] == ':')) {
      ++name_end;
    }
    if (text_[skip_space(text_, name_end)] != '{') return;
    namespace_ = fmt::format("{}::", text_.substr(begin, name_end - begin));
    if (namespace_ == "::") namespace_.clear();
    is_namespace_ = true;
  }

  // Statements for the host's processor stay.
  void assembly(std::size_t end) {
    std::size_t open = skip_space(text_, end);
    while (open < text_.size() && is_word(text_[open])) {
      while (open < text_.size() && is_word(text_[open])) ++open;
      open = skip_space(text_, open);
    }
    if (open >= text_.size() || text_[open] != '(') return copy_to(end);
    const std::size_t close = skip_brackets(text_, open);
    const std::string_view whole = text_.substr(open, close - open);
    const std::optional<std::string> cpp = cpp_from_ptx(without_line_markers(whole), statements_);
    if (!cpp) return copy_to(end);
    ++statements_;
    out_ += *cpp + newlines_of(text_.substr(at_, close - at_));
    at_ = close;
  }

  // True if this `main` is the program's definition: at file scope, before a body.
  bool is_main(std::size_t end) const {
    if (keeps_main_ || !scopes_.empty()) return false;
    const std::size_t open = skip_space(text_, end);
    if (open >= text_.size() || text_[open] != '(') return false;
    return text_[skip_space(text_, skip_brackets(text_, open))] == '{';
  }

  // Converts all forms of main() to one.
  std::string main_name(std::size_t end) {
    const std::size_t open = skip_space(text_, end);
    const std::string_view list = text_.substr(open + 1, skip_brackets(text_, open) - open - 2);
    const std::size_t arguments =
        skip_space(list, 0) == list.size() || list == "void"
            ? 0
            : static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
    constexpr std::string_view kPassed[] = {"", "argc", "argc, argv", "argc, argv, environment"};
    registrations_ += fmt::format(
        "extern \"C\" __attribute__((visibility(\"hidden\"))) int towpath_gpu_main(int argc, "
        "char** "
        "argv, char** environment) {{ return towpath_gpu_user_main({}); }}\n",
        kPassed[std::min<std::size_t>(arguments, 3)]);
    main_end_ = skip_brackets(text_, skip_space(text_, skip_brackets(text_, open)));
    return "towpath_gpu_user_main";
  }

  [[noreturn]] void refuse(const char* what) const {
    const std::string_view since = text_.substr(marker_end_, at_ - marker_end_);
    const auto lines = std::count(since.begin(), since.end(), '\n');
    throw KernelError(KernelError::Kind::compilation,
                      fmt::format("{}:{}: {}", file_, marker_line_ + lines, what));
  }

  // Position of the bracket that closes just before `end` in the output.
  std::size_t opening(std::size_t end, char open, char close) const {
    int depth = 0;
    while (end > 0) {
      --end;
      if (out_[end] == close) ++depth;
      if (out_[end] == open && --depth == 0) break;
    }
    return end;
  }

  std::size_t without_space(std::size_t end) const {
    while (end > 0 && is_space(out_[end - 1])) --end;
    return end;
  }

  // The expression at the end of the output: name, ns::name, name<arguments>.
  std::size_t begin_of_callee() const {
    std::size_t end = without_space(out_.size());
    if (end > 0 && out_[end - 1] == ')') return opening(end, '(', ')');
    if (end > 0 && out_[end - 1] == '>') end = without_space(opening(end, '<', '>'));
    std::size_t begin = end;
    while (begin > 0 && (is_word(out_[begin - 1]) || out_[begin - 1] == ':')) --begin;
    if (begin == end) refuse("a launch <<<...>>> needs the name of a kernel before it");
    return begin;
  }

  void launch() {
    const std::size_t begin = begin_of_callee();
    const std::string callee = out_.substr(begin);
    std::size_t end = at_ + 3;
    while (end < text_.size() && text_.substr(end, 3) != ">>>") {
      const std::size_t behind = skip_literal(text_, end);
      if (behind > end) {
        end = behind;
      } else if (text_[end] == '(' || text_[end] == '{' || text_[end] == '[') {
        end = skip_brackets(text_, end);
      } else {
        ++end;
      }
    }
    if (end >= text_.size()) refuse("a launch <<< has no >>>");
    const std::string_view configuration = text_.substr(at_ + 3, end - at_ - 3);
    const std::size_t open = skip_space(text_, end + 3);
    if (open >= text_.size() || text_[open] != '(') {
      refuse("a launch needs the kernel's arguments in parentheses after >>>");
    }
    const std::size_t close = skip_brackets(text_, open);
    const std::string arguments(text_.substr(open + 1, close - open - 2));
    const bool has_arguments = skip_space(arguments, 0) < arguments.size();
    std::string name;
    for (const char c : callee) {
      if (!is_space(c)) name += c;
    }
    out_.resize(begin);
    out_ += fmt::format(
        "::towpath_gpu::launch(::towpath_gpu::LaunchConfiguration({}), \"{}\", [=](const auto&... "
        "towpath_arguments) {{ {}(towpath_arguments...); }}{}",
        configuration, name, body_of(name).value_or(callee), has_arguments ? "," : "");
    at_ = open + 1;
    // The arguments may contain launches only inside lambdas. They are read like the rest.
  }

  // The function that takes the constants of a kernel by reference.
  std::optional<std::string> body_of(const std::string& kernel) const {
    const std::size_t scope = kernel.rfind(':') + 1;
    if (!kernels_with_constants_.contains(kernel.substr(scope))) return std::nullopt;
    return std::string(kernel).insert(scope, kBody);
  }

  void shared(std::size_t end) {
    // Words before it in the declaration, such as extern or volatile.
    std::size_t begin = out_.size();
    while (begin > 0 && (is_word(out_[begin - 1]) || is_space(out_[begin - 1]))) --begin;
    std::string before = out_.substr(begin);
    const std::size_t stop = text_.find(';', end);
    std::string declaration = before + std::string(text_.substr(end, stop - end));
    bool is_extern = false;
    for (const std::string_view word : {"extern", "static"}) {
      const std::size_t found = find_word(declaration, word);
      if (found == std::string::npos) continue;
      is_extern = is_extern || word == "extern";
      declaration.erase(found, word.size());
    }
    out_.resize(begin);
    at_ = stop;
    if (is_at_file_scope()) return file_shared(declaration, is_extern);
    if (is_extern) return dynamic_shared(declaration);
    const std::vector<std::string> names = declared(declaration);
    const std::string slot = fmt::format("towpath_slot_{}", slots_++);
    // Without the bytes that alignment adds after the last variable.
    const std::string size =
        names.empty()
            ? fmt::format("sizeof({})", slot)
            : fmt::format("__builtin_offsetof({0}, {1}) + sizeof({0}::{1})", slot, names.back());
    out_ += fmt::format(
        "struct {0} {{ {1}; }}; {0}& {0}_used = ::towpath_gpu::shared<{0}>(\"{2}\", {3})", slot,
        declaration, fmt::format("{}", fmt::join(names, ", ")), size);
    for (const std::string& name : names) {
      out_ += fmt::format("; auto& {1} = {0}_used.{1}", slot, name);
    }
  }

  bool is_at_file_scope() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const BraceScope& scope) { return scope.is_namespace; });
  }
  static std::string accessor_of(std::string_view name) {
    return fmt::format("towpath_shared_{}()", name);
  }
  // A variable outside of functions has no address until a block runs. A function returns it, and
  // later uses of its name call the function. An extern array without a size is the dynamic part.
  void file_shared(const std::string& declaration, bool is_extern) {
    const std::vector<std::string> names = declared(declaration);
    if (names.size() != 1) refuse("__shared__ outside of a function must declare one variable");
    const std::string& name = names.front();
    out_ += newlines_of(declaration);
    if (!file_shared_.insert(name).second) return;
    const std::string slot = fmt::format("towpath_slot_of_{}", name);
    const std::size_t bracket = declaration.find('[');
    const bool is_dynamic = is_extern && bracket != std::string::npos &&
                            declaration[skip_space(declaration, bracket + 1)] == ']';
    if (is_dynamic) {
      out_ += fmt::format(
          "static inline auto* {0} {{ using {1} = {2}; return static_cast<{1}*>(::towpath_gpu::"
          "dynamic_shared()); }}",
          accessor_of(name), slot, element_type(declaration, name));
      return;
    }
    // Without a linkage of their own, equal names in two files would be one type.
    out_ += fmt::format(
        "namespace {{ struct {0} {{ {1}; }}; const unsigned long {0}_offset = ::towpath_gpu::"
        "shared_offset(\"{3}\", sizeof({0}), alignof({0})); }} static inline auto& {2} {{ return "
        "::towpath_gpu::file_shared<{0}>({0}_offset, \"{3}\", sizeof({0})).{3}; }}",
        slot, one_line(declaration), accessor_of(name), name);
  }

  // The text before the name, without attributes.
  static std::string element_type(const std::string& declaration, const std::string& name) {
    std::string type = declaration.substr(0, declaration.rfind(name, declaration.find('[')));
    std::size_t attribute;
    while ((attribute = type.find("__attribute__")) != std::string::npos) {
      const std::size_t open = type.find('(', attribute);
      type.erase(attribute, skip_brackets(type, open) - attribute);
    }
    return one_line(type);
  }

  // extern __shared__ T name[], or T name.
  void dynamic_shared(const std::string& declaration) {
    const std::vector<std::string> names = declared(declaration);
    if (names.size() != 1) refuse("extern __shared__ must declare one variable");
    const bool is_array = declaration.find('[') != std::string::npos;
    out_ += fmt::format("{0}{1}{3} {2} = {4}static_cast<{1}*>(::towpath_gpu::dynamic_shared())",
                        newlines_of(declaration), element_type(declaration, names[0]), names[0],
                        is_array ? "* const" : "&", is_array ? "" : "*");
  }

  void global(std::size_t end) {
    const std::size_t open = text_.find('(', end);
    std::size_t name_end = open;
    while (name_end > end && is_space(text_[name_end - 1])) --name_end;
    std::size_t name_begin = name_end;
    while (name_begin > end && is_word(text_[name_begin - 1])) --name_begin;
    const std::string name(text_.substr(name_begin, name_end - name_begin));
    if (!is_template()) {
      const std::size_t close = skip_brackets(text_, open);
      const std::string parameters(text_.substr(open + 1, close - open - 2));
      std::string qualified;
      for (const BraceScope& scope : scopes_) qualified += scope.qualifier;
      const bool has_constants = find_word(parameters, kConstant) != std::string::npos &&
                                 parameters.find('=') == std::string::npos &&
                                 text_.substr(skip_space(text_, close), 1) == "{";
      if (has_constants) return kernel_with_constants({qualified, name, parameters}, end, close);
      register_kernel(qualified + name, without_constants(parameters));
    } else if (keeps_main_) {
      kernel_templates_.insert(name);
    }
    at_ = end;
  }

  struct KernelText {
    std::string scope, name, parameters;
  };
  // A __grid_constant__ is one object for all threads of the grid. The body takes it by reference,
  // and the kernel, whose address a program has, is the body with copies.
  void kernel_with_constants(const KernelText& kernel, std::size_t begin, std::size_t end) {
    const std::string body = kBody + kernel.name;
    kernels_with_constants_.insert(kernel.name);
    const std::string list = constants_by_reference(kernel.parameters);
    const std::string declaration = fmt::format(" static void {}({})", body, list);
    out_.insert(begin_of_declaration(), declaration + ";");
    out_ += without_constants(text_.substr(begin, end - begin));
    out_ += fmt::format(" {{ {}({}); }}{}", body,
                        fmt::join(declared(one_line(kernel.parameters)), ", "), declaration);
    at_ = end;
    register_kernel(kernel.scope + kernel.name, without_constants(kernel.parameters),
                    fmt::format(", static_cast<void (*)({})>({}{})", list, kernel.scope, body));
  }
  static std::string without_constants(std::string_view parameters) {
    std::string text(parameters);
    for (std::size_t at = 0; (at = find_word(text, kConstant)) != std::string::npos;) {
      text.erase(at, kConstant.size());
    }
    return text;
  }
  static std::string constants_by_reference(const std::string& parameters) {
    std::vector<std::string> all = declarators(one_line(parameters));
    for (std::string& each : all) {
      if (find_word(each, kConstant) == std::string::npos) continue;
      each = without_constants(each);
      each.insert(each.rfind(declared(each).front()), "& ");
    }
    return fmt::format("{}", fmt::join(all, ","));
  }
  // In the output, before its first word.
  std::size_t begin_of_declaration() const {
    std::size_t begin = end_of_previous();
    while (begin < out_.size() && out_[begin] == '#') begin = out_.find('\n', begin) + 1;
    return begin;
  }

  // True if the current declaration starts with `template`.
  bool is_template() const {
    return find_word(std::string_view(out_).substr(end_of_previous()), "template") !=
           std::string::npos;
  }
  // The end of the statement before the current declaration, in the output.
  std::size_t end_of_previous() const {
    int depth = 0;
    for (std::size_t i = out_.size(); i > 0; --i) {
      const char c = out_[i - 1];
      if (c == ')') ++depth;
      if (c == '(') --depth;
      if (depth == 0 && (c == ';' || c == '}' || c == '{')) return i;
    }
    return 0;
  }

  // `body` is the function that threads run, if it is another one.
  void register_kernel(const std::string& name, const std::string& parameters,
                       const std::string& body = "") {
    if (!registered_.insert(name).second) return;
    const bool has_defaults = parameters.find('=') != std::string::npos;
    const std::string function =
        parameters.empty() || has_defaults
            ? name
            : fmt::format("static_cast<void (*)({})>({})", one_line(parameters), name);
    registrations_ +=
        fmt::format("static ::towpath_gpu::Registration towpath_kernel_{}(\"{}\", {}{});\n",
                    registered_.size(), name, function, body);
  }

  std::string_view text_;
  const std::vector<std::string>& kernels_;
  bool keeps_main_;
  std::size_t at_ = 0;
  std::string out_;
  std::string file_;  // from the last line marker, with the number of the next line
  int marker_line_ = 1;
  std::size_t marker_end_ = 0;
  std::string namespace_;  // opened by the next brace
  bool is_namespace_ = false;
  struct BraceScope {
    std::string qualifier;  // "name::" of a namespace
    bool is_namespace;
  };
  std::vector<BraceScope> scopes_;  // the open braces
  std::string registrations_;
  std::unordered_set<std::string> registered_;
  std::set<std::string, std::less<>> file_shared_;  // __shared__ variables outside of functions
  std::set<std::string, std::less<>> kernel_templates_;  // of a linked program
  std::set<std::string, std::less<>> kernels_with_constants_;
  int slots_ = 0;
  int statements_ = 0;        // of PTX
  std::size_t main_end_ = 0;  // after its closing brace
};

constexpr std::string_view kOptional = "__towpath_optional__";

// A header function that is dropped unless its name occurs elsewhere.
struct OptionalFunction {
  std::size_t begin;
  std::size_t body;  // after the marker
  std::size_t end;
  std::string_view name;
};

OptionalFunction optional_at(std::string_view text, std::size_t begin) {
  OptionalFunction function{begin, begin + kOptional.size(), 0, {}};
  const std::size_t open = text.find('(', function.body);
  std::size_t name = open;
  while (is_word(text[name - 1])) --name;
  function.name = text.substr(name, open - name);
  function.end = skip_brackets(text, text.find('{', skip_brackets(text, open)));
  return function;
}

std::string without_unused(std::string_view text) {
  std::vector<OptionalFunction> functions;
  std::unordered_set<std::string_view> words;
  const auto note_words = [&](std::string_view part) {
    for (std::size_t i = 0; i < part.size();) {
      if (!is_word(part[i])) {
        ++i;
        continue;
      }
      const std::size_t begin = i;
      while (i < part.size() && is_word(part[i])) ++i;
      if (part.substr(begin).starts_with("nvshmem")) words.insert(part.substr(begin, i - begin));
    }
  };
  std::size_t at = 0;
  while (true) {
    const std::size_t found = text.find(kOptional, at);
    note_words(text.substr(at, found == std::string_view::npos ? found : found - at));
    if (found == std::string_view::npos) break;
    functions.push_back(optional_at(text, found));
    at = functions.back().end;
  }
  std::string kept;
  kept.reserve(text.size());
  at = 0;
  for (const OptionalFunction& function : functions) {
    kept += text.substr(at, function.begin - at);
    const bool is_used = words.contains(function.name);
    const std::string_view body = text.substr(function.body, function.end - function.body);
    kept += is_used ? std::string(body) : newlines_of(body);
    at = function.end;
  }
  kept += text.substr(at);
  return kept;
}

}  // namespace

std::string cpp_from_cuda(std::string_view preprocessed, const std::vector<std::string>& kernels,
                          bool keeps_main) {
  const std::string needed = without_unused(preprocessed);
  return Rewriter(needed, kernels, keeps_main).result();
}

}  // namespace towpath::gpu
