"""Programming languages: how files and editors name them, and what their grammars call things."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Language:
    """One language with a tree-sitter grammar.

    Attributes:
        name: as fences and most editors have it.
        grammar: the Python package of its grammar.
        entry: the function in it that gives the grammar.
        suffixes: of its files, without the dot.
        aliases: further names that editors use.
        blocks: kinds of nodes whose named children are statements, members or entries.
        definitions: kinds of nodes that define something with a name.
        values: kinds of nodes that do so only as the value of a carrier: ``const f = () => …``.
        carriers: kinds of nodes that belong to the definition within them: decorators, ``export``, ``const f = …``.
    """

    name: str
    grammar: str
    entry: str = "language"
    suffixes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    blocks: frozenset[str] = frozenset()
    definitions: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    carriers: frozenset[str] = frozenset()


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SCRIPT_BLOCKS = _words("program statement_block class_body switch_body")
_SCRIPT_DEFINITIONS = _words("function_declaration generator_function_declaration class_declaration method_definition")
_SCRIPT_VALUES = _words("arrow_function function_expression generator_function class")
_SCRIPT_CARRIERS = _words(
    "export_statement lexical_declaration variable_declaration variable_declarator expression_statement "
    "assignment_expression pair field_definition"
)
_TYPED_BLOCKS = _SCRIPT_BLOCKS | _words("interface_body object_type enum_body")
_TYPED_DEFINITIONS = _SCRIPT_DEFINITIONS | _words(
    "abstract_class_declaration abstract_method_signature interface_declaration type_alias_declaration "
    "enum_declaration function_signature internal_module module"
)
_TYPED_CARRIERS = _SCRIPT_CARRIERS | _words("public_field_definition ambient_declaration")
_C_BLOCKS = _words(
    "translation_unit compound_statement field_declaration_list enumerator_list declaration_list preproc_if "
    "preproc_ifdef preproc_else preproc_elif"
)
_C_DEFINITIONS = _words("function_definition struct_specifier union_specifier enum_specifier preproc_function_def")

LANGUAGES = (
    Language(
        "python", "tree_sitter_python", suffixes=("py", "pyi", "pyw"),
        blocks=_words("module block"),
        definitions=_words("function_definition class_definition"),
        carriers=_words("decorated_definition"),
    ),
    Language(
        "javascript", "tree_sitter_javascript", suffixes=("js", "jsx", "mjs", "cjs"), aliases=("javascriptreact",),
        blocks=_SCRIPT_BLOCKS, definitions=_SCRIPT_DEFINITIONS, values=_SCRIPT_VALUES, carriers=_SCRIPT_CARRIERS,
    ),
    Language(
        "typescript", "tree_sitter_typescript", "language_typescript", suffixes=("ts", "mts", "cts"),
        blocks=_TYPED_BLOCKS, definitions=_TYPED_DEFINITIONS, values=_SCRIPT_VALUES, carriers=_TYPED_CARRIERS,
    ),
    Language(
        "tsx", "tree_sitter_typescript", "language_tsx", suffixes=("tsx",), aliases=("typescriptreact",),
        blocks=_TYPED_BLOCKS, definitions=_TYPED_DEFINITIONS, values=_SCRIPT_VALUES, carriers=_TYPED_CARRIERS,
    ),
    Language(
        "go", "tree_sitter_go", suffixes=("go",),
        blocks=_words(
            "source_file statement_list field_declaration_list interface_type var_spec_list import_spec_list"
        ),
        definitions=_words("function_declaration method_declaration type_spec type_alias"),
        carriers=_words("type_declaration"),
    ),
    Language(
        "rust", "tree_sitter_rust", suffixes=("rs",),
        blocks=_words("source_file block declaration_list field_declaration_list enum_variant_list match_block"),
        definitions=_words(
            "function_item function_signature_item struct_item enum_item union_item trait_item impl_item mod_item "
            "macro_definition type_item"
        ),
    ),
    Language(
        "java", "tree_sitter_java", suffixes=("java",),
        blocks=_words(
            "program block class_body interface_body enum_body enum_body_declarations constructor_body switch_block "
            "annotation_type_body"
        ),
        definitions=_words(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration "
            "method_declaration constructor_declaration compact_constructor_declaration"
        ),
    ),
    Language(
        "c", "tree_sitter_c", suffixes=("c",), blocks=_C_BLOCKS, definitions=_C_DEFINITIONS,
        carriers=_words("type_definition"),
    ),
    # A header may be of either language, and nearly all of C parses as C++.
    Language(
        "cpp", "tree_sitter_cpp", suffixes=("cpp", "cc", "cxx", "hpp", "hh", "hxx", "h", "ipp", "cu", "cuh"),
        aliases=("c++", "cuda-cpp"), blocks=_C_BLOCKS,
        definitions=_C_DEFINITIONS
        | _words("class_specifier namespace_definition concept_definition alias_declaration"),
        carriers=_words("type_definition template_declaration"),
    ),
    Language(
        "csharp", "tree_sitter_c_sharp", suffixes=("cs", "csx"), aliases=("c#",),
        blocks=_words("compilation_unit block declaration_list enum_member_declaration_list switch_body"),
        definitions=_words(
            "class_declaration struct_declaration interface_declaration enum_declaration record_declaration "
            "delegate_declaration method_declaration constructor_declaration destructor_declaration "
            "property_declaration operator_declaration indexer_declaration local_function_statement "
            "namespace_declaration"
        ),
    ),
    Language(
        "ruby", "tree_sitter_ruby", suffixes=("rb", "rake", "gemspec"),
        blocks=_words("program body_statement block_body then else do"),
        definitions=_words("method singleton_method class module singleton_class"),
    ),
    Language(
        "php", "tree_sitter_php", "language_php", suffixes=("php", "phtml"),
        blocks=_words("program compound_statement declaration_list enum_declaration_list"),
        definitions=_words(
            "function_definition class_declaration interface_declaration trait_declaration enum_declaration "
            "method_declaration"
        ),
    ),
    Language(
        "bash", "tree_sitter_bash", suffixes=("sh", "bash", "zsh", "ksh"), aliases=("shellscript", "shell"),
        blocks=_words("program compound_statement do_group"), definitions=_words("function_definition"),
    ),
    Language(
        "css", "tree_sitter_css", suffixes=("css",), blocks=_words("stylesheet block keyframe_block_list"),
        definitions=_words("rule_set media_statement keyframes_statement supports_statement"),
    ),
    Language("html", "tree_sitter_html", suffixes=("html", "htm", "xhtml"), blocks=_words("document element")),
    Language("json", "tree_sitter_json", suffixes=("json", "jsonc"), blocks=_words("document object array")),
)  # fmt: skip


def language_of(path: str) -> Language | None:
    """The language of a file by its suffix, or None if it is none of ours.

    Args:
        path: a path or a bare file name, of any platform.
    """
    return _by_suffix().get(PurePosixPath(path.replace("\\", "/")).suffix[1:].lower())


def language_named(name: str) -> Language | None:
    """The language of a name as fences and editors give it (``"py"``, ``"typescriptreact"``), or None."""
    return _by_name().get(name.strip().lower())


@cache
def _by_suffix() -> dict[str, Language]:
    return {suffix: language for language in LANGUAGES for suffix in language.suffixes}


@cache
def _by_name() -> dict[str, Language]:
    names = {name: language for language in LANGUAGES for name in (language.name, *language.aliases)}
    return _by_suffix() | names
