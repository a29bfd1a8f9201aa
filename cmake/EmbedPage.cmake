# Joins plan.html, plan.css and plan.js of PARTS_FOLDER and writes OUTPUT, a C++ source that defines kPlanPage.
file(READ ${PARTS_FOLDER}/plan.html page)
file(READ ${PARTS_FOLDER}/plan.css style)
file(READ ${PARTS_FOLDER}/plan.js script)
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
file(WRITE ${OUTPUT} "#include \"plan/page.h\"

namespace headway {

const std::string_view kPlanPage = R\"_PAGE_(${page})_PAGE_\";

}  // namespace headway
")
